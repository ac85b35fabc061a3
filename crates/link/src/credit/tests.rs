use super::*;
use proptest::prelude::*;

const fn at(ms: u64) -> Moment {
    Moment::from_micros(ms * 1_000)
}

proptest! {
    /// However both ends go on, what lies at the receiver is never more than its window, and who keeps consuming is never
    /// left without credit.
    #[test]
    fn the_window_holds_and_nobody_starves(steps in prop::collection::vec((0..40_000_u32, 0..40_000_u32, 0..500_u64), 1..200)) {
        let mut now = at(0);
        let mut send = SendCredit::new(65_536);
        let mut receive = ReceiveCredit::new(65_536, 1 << 20, now);
        let (mut lying, mut sharing) = (0_u32, Sharing::default());
        for (sends, consumes, ms) in steps {
            now = now + Duration::from_millis(ms);
            let sent = u64::from(sends).min(send.available()) as u32;
            send.spend(sent as usize).unwrap();
            receive.receive(sent as usize).unwrap();
            lying += sent;
            prop_assert!(lying <= receive.window());
            let consumed = consumes.min(lying);
            lying -= consumed;
            if let Some(grant) = receive.consume(consumed as usize, now, &mut sharing) {
                send.grant(grant);
            }
        }
        if let Some(grant) = receive.consume(lying as usize, now, &mut sharing) {
            send.grant(grant);
        }
        prop_assert!(send.available() > 0, "all is consumed, and nothing may be sent");
        prop_assert!(send.available() <= u64::from(receive.window()));
    }
}

#[test]
fn more_than_was_granted_is_a_fault() {
    let mut send = SendCredit::new(10);
    assert_eq!(send.spend(11), Err(Overrun));
    assert_eq!(send.spend(10), Ok(()));
    assert_eq!(send.spend(1), Err(Overrun));
    let mut receive = ReceiveCredit::new(10, 10, at(0));
    assert_eq!(receive.receive(10), Ok(()));
    assert_eq!(receive.receive(1), Err(Overrun));
}

#[test]
fn a_fast_stream_gets_a_larger_window_and_a_slow_one_does_not() {
    let mut sharing = Sharing::default();
    let mut fast = ReceiveCredit::new(1_000, 4_000, at(0));
    for turn in 1..10 {
        fast.receive(500).unwrap();
        fast.receive(500).unwrap();
        fast.consume(1_000, at(turn * 10), &mut sharing);
        fast.receive(0).unwrap();
    }
    assert_eq!(fast.window(), 4_000);
    let mut slow = ReceiveCredit::new(1_000, 4_000, at(0));
    for turn in 1..10 {
        slow.receive(1_000).unwrap();
        assert_eq!(slow.consume(1_000, at(turn * 1_000), &mut sharing), Some(1_000));
    }
    assert_eq!(slow.window(), 1_000);
}

/// Streams that came first had windows sixteen times as large as those of the others, and so sixteen times their share of each queue.
#[test]
fn a_large_window_shrinks_when_others_need_the_connection() {
    const FIRST: u32 = 256 * 1024;
    const GREATEST: u32 = 4 * 1024 * 1024;
    let mut sharing = Sharing::default();
    let mut streams = vec![ReceiveCredit::new(FIRST, GREATEST, at(0)); 100];
    let mut turn = |streams: &mut [ReceiveCredit], ms: u64| {
        for stream in streams {
            let bytes = stream.window() as usize / 2 + 1;
            stream.receive(bytes).unwrap();
            stream.consume(bytes, at(ms), &mut sharing);
        }
    };
    for ms in 1..20 {
        turn(&mut streams[..1], ms * 20);
    }
    assert_eq!(streams[0].window(), GREATEST, "alone, it has what it needs");
    for ms in 20..100 {
        turn(&mut streams, ms * 20);
    }
    assert!(streams.iter().all(|stream| stream.window() == FIRST));
    for ms in 100..200 {
        turn(&mut streams[..1], ms * 20);
    }
    assert_eq!(streams[0].window(), GREATEST, "alone again");
}
