use super::*;

fn ms(ms: u64) -> Moment {
    Moment::from_micros(1_000 * ms)
}

fn reason(result: Result<(), Refusal>) -> Option<(Reason, Option<u128>)> {
    result.err().map(|refusal| (refusal.reason, refusal.retry_after.map(|after| after.as_millis())))
}

#[test]
fn streams_at_once_are_bounded_and_come_back() {
    let mut gate = Gate::new(Limits { streams: 2, ..Limits::default() }, 0);
    assert!(gate.open("a:1", ms(0)).is_ok() && gate.open("a:1", ms(0)).is_ok());
    assert_eq!(reason(gate.open("a:1", ms(0))), Some((Reason::LimitStreams, None)));
    gate.close();
    assert!(gate.open("a:1", ms(0)).is_ok());
    assert_eq!(gate.live(), 2);
}

#[test]
fn opens_a_second_are_bounded() {
    let mut gate = Gate::new(Limits { streams_per_second: 10, ..Limits::default() }, 0);
    let opened = (0..2_000).filter(|now| gate.open("a:1", ms(*now)).is_ok()).count();
    assert!((29..=30).contains(&opened), "ten at once and ten a second, not {opened}");
    assert!(matches!(reason(gate.open("a:1", ms(1_999))), Some((Reason::LimitOpens, Some(1..=100)))));
    gate.set_limits(Limits::default(), ms(2_000));
    assert!((0..1_000).all(|_| gate.open("a:1", ms(2_000)).is_ok()), "no limit");
}

#[test]
fn distinct_targets_a_minute_are_bounded() {
    let mut gate = Gate::new(Limits::default(), 3);
    assert!((0..3).all(|target| gate.open(&format!("a:{target}"), ms(1_000)).is_ok()));
    assert_eq!(reason(gate.open("a:3", ms(2_000))), Some((Reason::LimitTargets, Some(58_000))));
    assert!((0..3).all(|target| gate.open(&format!("a:{target}"), ms(59_999)).is_ok()), "known ones go on");
    assert!(gate.open("a:3", ms(61_000)).is_ok());
}

#[test]
fn an_address_that_guesses_has_to_wait() {
    let mut guesses = Guesses::default();
    let peer: IpAddr = "192.0.2.1".parse().unwrap();
    for _ in 0..FAILURES_AT_ONCE {
        assert_eq!(guesses.wait(peer, ms(0)), None);
        guesses.failed(peer, ms(0));
    }
    assert_eq!(guesses.wait(peer, ms(0)), Some(FAILURE_FORGIVEN_AFTER));
    assert_eq!(guesses.wait("::ffff:192.0.2.1".parse().unwrap(), ms(0)), Some(FAILURE_FORGIVEN_AFTER));
    assert_eq!(guesses.wait("192.0.2.2".parse().unwrap(), ms(0)), None);
    assert_eq!(guesses.wait(peer, ms(0) + FAILURE_FORGIVEN_AFTER), None);
    for host in 0..100 {
        guesses.failed(format!("2001:db8::{host}").parse().unwrap(), ms(0));
    }
    assert!(guesses.wait("2001:db8::ffff".parse().unwrap(), ms(0)).is_some(), "a /64 is one guesser");
}

#[test]
fn the_addresses_that_are_remembered_are_bounded() {
    let mut guesses = Guesses::default();
    for host in 0..u32::try_from(MAX_ADDRESSES).unwrap() + 500 {
        guesses.failed(std::net::Ipv4Addr::from(host).into(), ms(0));
    }
    assert_eq!(guesses.buckets.len(), MAX_ADDRESSES);
}

#[test]
fn a_rate_is_kept_over_all_streams_of_an_account() {
    let mut gate = Gate::new(Limits { bytes_per_second: 1_000_000, ..Limits::default() }, 0);
    let (mut now, mut passed) = (ms(5_000), 0);
    while now < ms(15_000) {
        passed += 16_384;
        now = now + gate.passed(16_384, now);
    }
    assert!((10_000_000..10_300_000).contains(&passed), "{passed} bytes in ten seconds");
}

#[test]
fn strangers_of_one_address_are_bounded_and_leave_nothing_behind() {
    let strangers = Strangers::new(3);
    let peer: IpAddr = "192.0.2.1".parse().unwrap();
    let mut there: Vec<_> = (0..3).map(|_| strangers.enter(peer).unwrap()).collect();
    assert!(strangers.enter(peer).is_none() && strangers.enter("192.0.2.2".parse().unwrap()).is_some());
    there.pop();
    assert!(strangers.enter(peer).is_some());
    drop(there);
    assert!(strangers.by_address.lock().unwrap().is_empty());
}
