use super::*;
use crate::code::Code;
use crate::fields::Malformed;
use crate::frame::{Frame, HEADER_BYTES, Kind};
use std::time::Duration;
use trust::Role;
use uuid::Uuid;

fn payload(frame: &[u8], kind: Kind) -> &[u8] {
    let frame = Frame::parse(frame).unwrap().unwrap();
    assert_eq!(frame.header.kind, Some(kind));
    frame.payload
}

fn welcome() -> Welcome {
    Welcome {
        version: 1,
        relay: Uuid::from_u128(7),
        epoch: 8,
        time_ms: 9,
        ping_interval_ms: 45_000,
        ping_misses: 2,
        backoff_base_ms: 1_000,
        backoff_cap_ms: 300_000,
        stable_after_ms: 60_000,
        streams: 64,
        window_bytes: 65_536,
        greatest_window_bytes: 1 << 20,
        addresses: vec!["relay.example:443".to_owned(), "[::1]:443".to_owned()],
    }
}

#[test]
fn each_message_comes_back_as_it_was_written() {
    let mut out = Vec::new();
    let hello = Hello {
        version: 1,
        role: Role::Proxy,
        token: "a.b.c",
        identity: &[3; 64],
        epoch: 77,
        proof: &[4; 64],
        software: "holdfast 0.1.0",
        dial: 3,
    };
    hello.write(&mut out);
    assert_eq!(Hello::decode(payload(&out, Kind::Hello)), Ok(hello));
    out.clear();
    welcome().write(&mut out);
    assert_eq!(Welcome::decode(payload(&out, Kind::Welcome)), Ok(welcome()));
    for retry_after in [None, Some(Duration::from_millis(1_500))] {
        out.clear();
        let refuse = Refuse { code: Code::Busy, cause: "full".into(), retry_after };
        refuse.write(9, &mut out);
        assert_eq!(Refuse::decode(payload(&out, Kind::Refuse)), Ok(refuse));
        out.clear();
        let reset = Reset { code: Code::Stalled, retry_after };
        reset.write(9, &mut out);
        assert_eq!(Reset::decode(payload(&out, Kind::Reset)), Ok(reset));
    }
    out.clear();
    let drain = Drain { deadline_ms: 1, spread_ms: 2, addresses: vec!["a:1".to_owned()] };
    drain.write(&mut out);
    assert_eq!(Drain::decode(payload(&out, Kind::Drain)), Ok(drain));
    for (provider, opener) in [(Some((Uuid::from_u128(1), 5)), None), (None, Some(Uuid::from_u128(2)))] {
        out.clear();
        let contract = Uuid::from_u128(3);
        let (seal, forward) = (b"sealed", opener.is_none());
        let open =
            Open { provider, opener, contract, deadline_ms: 10, hops: 1, window_bytes: 11, seal, forward };
        open.write(12, &mut out);
        assert_eq!(Open::decode(payload(&out, Kind::Open)), Ok(open));
    }
}

#[test]
fn what_relays_say_to_each_other_comes_back_as_it_was_written() {
    let (mut out, relay) = (Vec::new(), Uuid::from_u128(7));
    let chain = vec![[1; 900].as_slice(), &[2; 500]];
    let peer = Peer { version: 1, relay, epoch: 8, address: "relay.example:443", chain, proof: &[3; 71] };
    peer.write(&mut out);
    assert_eq!(Peer::decode(payload(&out, Kind::Peer)), Ok(peer));
    out.clear();
    let peered = Peered { version: 1, relay, epoch: 8, address: "[::1]:443" };
    peered.write(&mut out);
    assert_eq!(Peered::decode(payload(&out, Kind::Peered)), Ok(peered));
    for draining in [false, true] {
        out.clear();
        Standing { draining }.write(&mut out);
        assert_eq!(Standing::decode(payload(&out, Kind::Standing)), Ok(Standing { draining }));
    }
}

#[test]
fn as_many_providers_as_a_frame_holds_are_told_at_once() {
    let all: Vec<_> = (0..MOST_PRESENT as u64 + 1)
        .map(|number| Present {
            client: Uuid::from_u64_pair(number, !number),
            epoch: number + 1,
            dial: number + 2,
            at_ms: number + 3,
        })
        .collect();
    for change in [PresenceChange::Came, PresenceChange::Left] {
        let mut out = Vec::new();
        Presence::write(change, all.iter().copied(), &mut out);
        let presence = Presence::decode(payload(&out, Kind::Presence)).unwrap();
        assert_eq!(presence.change, change);
        assert!(presence.providers().eq(all[..MOST_PRESENT].iter().copied()));
        assert_eq!(Presence::decode(&out[HEADER_BYTES..out.len() - 1]), Err(Malformed::BadLength));
    }
    let mut out = Vec::new();
    Presence::write(PresenceChange::Whole, all.into_iter(), &mut out);
    assert_eq!(Presence::decode(payload(&out, Kind::Presence)).unwrap().providers().count(), 0);
    for wrong in [&[][..], &[0], &[1], &[4], &[3, 0]] {
        assert!(Presence::decode(wrong).is_err());
    }
}

#[test]
fn fields_of_tomorrow_are_skipped_and_fields_of_today_come_once() {
    let mut out = Vec::new();
    Reset::because(Code::Timeout).write(1, &mut out);
    let mut extended = out[HEADER_BYTES..].to_vec();
    extended.extend_from_slice(&[200, 0, 1, 9]);
    assert_eq!(Reset::decode(&extended), Ok(Reset::because(Code::Timeout)));
    let twice = [&out[HEADER_BYTES..], &out[HEADER_BYTES..]].concat();
    assert_eq!(Reset::decode(&twice), Err(Malformed::Twice(1)));
    assert_eq!(Reset::decode(&out[HEADER_BYTES..out.len() - 1]), Err(Malformed::CutOff));
    assert_eq!(Reset::decode(&[]), Err(Malformed::Missing(1)));
}

#[test]
fn bounds_hold_at_their_last_byte() {
    for (bytes, fits) in [(MAX_SEAL_BYTES, true), (MAX_SEAL_BYTES + 1, false)] {
        let mut out = Vec::new();
        Opened { window_bytes: 1, seal: &vec![0; bytes] }.write(1, &mut out);
        assert_eq!(Opened::decode(&out[HEADER_BYTES..]).is_ok(), fits);
    }
    let mut out = Vec::new();
    let mut crowded = welcome();
    crowded.addresses = vec!["a:1".to_owned(); MAX_ADDRESSES + 1];
    crowded.write(&mut out);
    assert_eq!(Welcome::decode(&out[HEADER_BYTES..]).unwrap().addresses.len(), MAX_ADDRESSES);
    let mut extended = out[HEADER_BYTES..].to_vec();
    extended.extend_from_slice(&[13, 0, 1, b'b']);
    assert_eq!(Welcome::decode(&extended), Err(Malformed::BadValue(13)));
}

#[test]
fn a_long_cause_is_cut_between_two_characters() {
    let mut out = Vec::new();
    Refuse { code: Code::Busy, cause: "ä".repeat(150).into(), retry_after: None }.write(0, &mut out);
    assert_eq!(Refuse::decode(&out[HEADER_BYTES..]).unwrap().cause, "ä".repeat(100));
}
