//! Targets of `fuzz/`, which the ordinary tests run too: whatever comes, nothing panics and no bound is passed.

use crate::frame::{Frame, HEADER_BYTES, Kind, MAX_FRAME_BYTES};
use crate::message::{
    Contract, Drain, Hello, MAX_ADDRESSES, MAX_CAUSE_BYTES, MAX_SEAL_BYTES, MOST_PRESENT, Moved, Open,
    Opened, Peer, Peered, Presence, Refuse, Reset, Standing, Welcome, decode_credit,
};
use crate::seal::{self, Answer, Initiator, Parties, Request, Responder};
use crate::websocket::{self, End, Handshake, MAX_HEAD_BYTES, Reader};
use uuid::Uuid;

/// What a peer sends, as one run of frames.
pub fn frames(mut bytes: &[u8]) {
    while let Ok(Some(frame)) = Frame::parse(bytes) {
        assert!(frame.bytes() >= HEADER_BYTES && frame.bytes() <= MAX_FRAME_BYTES);
        if let Some(kind) = frame.header.kind {
            payload(kind, frame.payload);
        }
        bytes = &bytes[frame.bytes()..];
    }
}

/// One payload, as each kind.
pub fn payloads(bytes: &[u8]) {
    for &kind in Kind::ALL {
        payload(kind, bytes);
    }
}

fn payload(kind: Kind, bytes: &[u8]) {
    match kind {
        Kind::Hello => drop(Hello::decode(bytes)),
        Kind::Welcome => {
            assert!(!Welcome::decode(bytes).is_ok_and(|welcome| welcome.addresses.len() > MAX_ADDRESSES));
        }
        Kind::Refuse => {
            assert!(!Refuse::decode(bytes).is_ok_and(|refuse| refuse.cause.len() > MAX_CAUSE_BYTES));
        }
        Kind::Drain => drop(Drain::decode(bytes)),
        Kind::Contract => drop(Contract::decode(bytes)),
        Kind::Open => {
            if let Ok(open) = Open::decode(bytes) {
                assert!(open.seal.len() <= MAX_SEAL_BYTES);
                // What was understood is understood again.
                let mut written = Vec::new();
                open.write(7, &mut written);
                assert_eq!(Open::decode(&written[HEADER_BYTES..]), Ok(open));
            }
        }
        Kind::Opened => drop(Opened::decode(bytes)),
        Kind::Reset => drop(Reset::decode(bytes)),
        Kind::Moved => drop(Moved::decode(bytes)),
        Kind::Credit => drop(decode_credit(bytes)),
        Kind::Peer => drop(Peer::decode(bytes)),
        Kind::Peered => drop(Peered::decode(bytes)),
        Kind::Presence => {
            if let Ok(presence) = Presence::decode(bytes) {
                let mut written = Vec::new();
                Presence::write(presence.change, presence.providers(), &mut written);
                let all = presence.providers().count() <= MOST_PRESENT;
                assert_eq!(Presence::decode(&written[HEADER_BYTES..]) == Ok(presence), all);
            }
        }
        Kind::Standing => drop(Standing::decode(bytes)),
        Kind::Ping | Kind::Pong | Kind::Data | Kind::Fin => {}
    }
}

/// What an opener sends as the first message of a seal, and a provider as the second, to ends whose keys are known here. The
/// payload is what is fuzzed: it is sealed first, as a peer would that means harm.
pub fn seal(bytes: &[u8]) {
    // As it is: nothing opens but what was sealed.
    assert!(Responder::read(&PRIVATE, &PARTIES, bytes).is_err());
    // What is inside.
    drop(Request::decode(bytes));
    drop(Answer::decode(bytes));
    if let Ok(request) = Request::decode(bytes) {
        let Some(public) = seal::public_key(&PRIVATE) else { return };
        let Ok((_, message)) = Initiator::new(&PRIVATE, &public, &PARTIES, &request) else { return };
        let Ok((_, read, _)) = Responder::read(&PRIVATE, &PARTIES, &message) else {
            unreachable!("what was sealed does not open")
        };
        assert_eq!(read, request);
    }
}

/// What a client asks of a relay in HTTP, and a relay or a proxy answers; and the frames of a WebSocket, which come in parts.
pub fn websocket(bytes: &[u8]) {
    let mut answer = Vec::new();
    if let Ok(Some(length)) = websocket::accept(bytes, &mut answer) {
        assert!(length <= bytes.len() && length <= MAX_HEAD_BYTES && !answer.is_empty());
    }
    let handshake = Handshake::begin("relay.example:443", &mut answer);
    assert!(!matches!(handshake.finish(bytes), Ok(Some(_))), "a key was guessed");
    if let Ok(Some((_, length))) = websocket::status(bytes) {
        assert!(length <= bytes.len());
    }
    for end in [End::Client, End::Server] {
        let (mut whole, mut replies) = (bytes.to_vec(), Vec::new());
        let at_once = Reader::new(end).read(&mut whole, 0, &mut replies);
        let (mut reader, mut parts, mut part_replies) = (Reader::new(end), Vec::new(), Vec::new());
        let in_parts = bytes.chunks(3).try_for_each(|part| {
            let start = parts.len();
            parts.extend_from_slice(part);
            reader.read(&mut parts, start, &mut part_replies)
        });
        assert_eq!(at_once, in_parts);
        // The masks of replies differ.
        assert_eq!(replies.len(), part_replies.len());
        if at_once.is_ok() {
            assert_eq!(whole, parts);
        }
    }
}

const PRIVATE: [u8; 32] = [7; 32];
const PARTIES: Parties =
    Parties { network: [1; 32], provider: Uuid::nil(), opener: Uuid::nil(), contract: Uuid::nil() };

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_comes_neither_panics_nor_passes_a_bound(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            frames(&bytes);
            payloads(&bytes);
            seal(&bytes);
            websocket(&bytes);
        }
    }
}
