//! Targets of `fuzz/`, which the ordinary tests run too: whatever comes, nothing panics and no bound is passed.

use crate::frame::{Frame, HEADER_BYTES, Kind, MAX_FRAME_BYTES};
use crate::message::{
    Contract, Drain, Hello, MAX_ADDRESSES, MAX_CAUSE_BYTES, MAX_SEAL_BYTES, Moved, Open, Opened, Refuse,
    Reset, Welcome, decode_credit,
};

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
        Kind::Ping | Kind::Pong | Kind::Data | Kind::Fin => {}
    }
}
