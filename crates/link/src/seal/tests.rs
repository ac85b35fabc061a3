use super::*;
use crate::code::Code;
use std::net::IpAddr;
use uuid::Uuid;

const PARTIES: Parties = Parties {
    network: [1; 32],
    provider: Uuid::from_u128(2),
    opener: Uuid::from_u128(3),
    contract: Uuid::from_u128(4),
};

fn keys(seed: u8) -> ([u8; 32], [u8; 32]) {
    (
        std::array::from_fn(|index| seed.wrapping_add(index as u8)),
        public_key(&std::array::from_fn(|index| seed.wrapping_add(index as u8))).unwrap(),
    )
}

fn request() -> Request {
    Request {
        time_ms: 1_000_000,
        provider_epoch: 9,
        target: Target { host: Host::Name("example.org".to_owned()), port: 443 },
        family: Family::V6,
    }
}

fn connected() -> Answer {
    Answer::Connected("2001:db8::1".parse::<IpAddr>().unwrap())
}

#[test]
fn both_ends_read_what_the_other_wrote() {
    let (opener, opener_public) = keys(10);
    let (provider, provider_public) = keys(20);
    let (initiator, first) = Initiator::new(&opener, &provider_public, &PARTIES, &request()).unwrap();
    let (responder, asked, from) = Responder::read(&provider, &PARTIES, &first).unwrap();
    assert_eq!((asked, from), (request(), opener_public));
    let (second, mut seal_back, mut open_there) = responder.answer(&connected()).unwrap();
    let (answer, mut seal_there, mut open_back) = initiator.finish(&second).unwrap();
    assert_eq!(answer, connected());
    for length in [0, 1, 1_000, MAX_PLAIN_BYTES] {
        let plain = vec![7; length];
        for (seal, open) in [(&mut seal_there, &mut open_there), (&mut seal_back, &mut open_back)] {
            let mut sealed = b"before".to_vec();
            seal.seal(&plain, &mut sealed).unwrap();
            assert_eq!(sealed.len(), 6 + length + TAG_BYTES);
            assert_eq!(open.open(&mut sealed[6..]).unwrap(), plain);
        }
    }
    assert!(seal_there.seal(&vec![0; MAX_PLAIN_BYTES + 1], &mut Vec::new()).is_err());
}

#[test]
fn a_refusal_is_told_under_the_seal() {
    let (opener, _) = keys(10);
    let (provider, provider_public) = keys(20);
    let (initiator, first) = Initiator::new(&opener, &provider_public, &PARTIES, &request()).unwrap();
    let (responder, ..) = Responder::read(&provider, &PARTIES, &first).unwrap();
    let failed = Answer::Failed { code: Code::Policy, cause: "port 25".to_owned() };
    let (second, ..) = responder.answer(&failed).unwrap();
    assert!(!second.windows(7).any(|part| part == b"port 25"));
    assert_eq!(initiator.finish(&second).unwrap().0, failed);
}

#[test]
fn whoever_changes_the_parties_or_a_byte_has_nothing() {
    let (opener, _) = keys(10);
    let (provider, provider_public) = keys(20);
    let (_, first) = Initiator::new(&opener, &provider_public, &PARTIES, &request()).unwrap();
    let others = [
        Parties { network: [9; 32], ..PARTIES },
        Parties { provider: Uuid::from_u128(9), ..PARTIES },
        Parties { opener: Uuid::from_u128(9), ..PARTIES },
        Parties { contract: Uuid::from_u128(9), ..PARTIES },
    ];
    for parties in others {
        assert!(matches!(Responder::read(&provider, &parties, &first), Err(SealError::DoesNotOpen)));
    }
    for index in 0..first.len() {
        let mut changed = first.clone();
        changed[index] ^= 1;
        assert!(Responder::read(&provider, &PARTIES, &changed).is_err(), "byte {index}");
    }
    assert!(Responder::read(&keys(30).0, &PARTIES, &first).is_err(), "another provider");
}

#[test]
fn what_is_changed_left_out_or_repeated_does_not_open() {
    let (opener, _) = keys(10);
    let (provider, provider_public) = keys(20);
    let (initiator, first) = Initiator::new(&opener, &provider_public, &PARTIES, &request()).unwrap();
    let (responder, ..) = Responder::read(&provider, &PARTIES, &first).unwrap();
    let (second, mut seal, _) = responder.answer(&connected()).unwrap();
    let (_, _, mut open) = initiator.finish(&second).unwrap();
    let mut messages: Vec<Vec<u8>> = Vec::new();
    for text in [b"one", b"two"] {
        let mut sealed = Vec::new();
        seal.seal(text, &mut sealed).unwrap();
        messages.push(sealed);
    }
    assert!(open.open(&mut messages[1].clone()).is_err(), "the first was left out");
    assert_eq!(open.open(&mut messages[0].clone()).unwrap(), b"one");
    assert!(open.open(&mut messages[0].clone()).is_err(), "it came again");
    let mut changed = messages[1].clone();
    changed[1] ^= 1;
    assert!(open.open(&mut changed).is_err());
    assert_eq!(open.open(&mut messages[1]).unwrap(), b"two");
}

#[test]
fn the_handshake_is_noise_as_others_write_it() {
    // The message lengths of Noise IK: key, sealed key, sealed payload; key, sealed payload.
    let (opener, _) = keys(10);
    let (provider, provider_public) = keys(20);
    let (initiator, first) = Initiator::new(&opener, &provider_public, &PARTIES, &request()).unwrap();
    let (responder, ..) = Responder::read(&provider, &PARTIES, &first).unwrap();
    let (second, ..) = responder.answer(&connected()).unwrap();
    assert_eq!(first.len(), 32 + 48 + request().encode().len() + 16);
    assert_eq!(second.len(), 32 + connected().encode().len() + 16);
    initiator.finish(&second).unwrap();
}
