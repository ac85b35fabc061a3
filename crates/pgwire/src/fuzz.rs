//! What any input must not break, as plain functions of bytes: for properties, and for a fuzzer.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::accept::{ClientLogin, LoginSecret, Method, Step};
use crate::connect::{ServerLogin, ServerSecret, ServerStep, StartupRequest};
use crate::frame::head;
use crate::md5::Md5Secret;
use crate::message::{ErrorFields, parse};
use crate::replies::{MAX_OWED, Noted, Origin, Received, ReplyQueue, Settled, Simulated};
use crate::scram::{MECHANISM, MockSecret, ScramKeys, Verifier};
use crate::secret::Password;
use crate::startup::{
    FirstPacket, MAX_STARTUP_PACKET, MAX_STARTUP_PARAMETERS, first_packet, startup_message,
};

/// More than any answer of ours to a message is longer than the message.
const MOST_ADDED_BYTES: usize = 1024;

/// The first packet: never waits for more than its bound, and is the same however it is split.
pub fn startup_packet(data: &[u8]) {
    let whole = first_packet(data);
    match &whole {
        Ok(None) => assert!(data.len() < MAX_STARTUP_PACKET + 4, "waits for more than the longest packet"),
        Ok(Some((packet, consumed))) => {
            assert!(*consumed <= data.len() && *consumed <= MAX_STARTUP_PACKET + 4);
            assert_eq!(first_packet(data.get(..consumed - 1).unwrap_or_default()), Ok(None));
            assert_eq!(first_packet(data.get(..*consumed).unwrap_or_default()), whole);
            if let FirstPacket::Startup(startup) = packet {
                assert!(startup.parameters.len() <= MAX_STARTUP_PARAMETERS && !startup.user.is_empty());
                let _ = startup_message(startup.parameters.iter().map(|(name, value)| (name, value)));
            }
        }
        Err(error) => assert!(!error.response().is_empty()),
    }
}

/// A session's traffic: pairs of bytes are a side and a tag. Whatever either side sends, the queue of replies keeps its
/// bound, and only ReadyForQuery brings the server to rest.
pub fn traffic(data: &[u8]) {
    let _ = head(data, u32::MAX);
    let mut queue = ReplyQueue::new();
    // Messages with an effect whose fate has not been told.
    let mut effects = 0;
    for step in data.chunks_exact(2) {
        let &[side, tag] = step else { continue };
        if side & 1 == 0 {
            let origin = [Origin::Client, Origin::Pooler, Origin::Injected][usize::from(side >> 1) % 3];
            let noted = match side >> 3 & 3 {
                0 => queue.simulate(Simulated::ParseComplete),
                1 if b"PBDCQ".contains(&tag) => queue.sent_with_effect(tag, origin),
                _ => queue.sent(tag, origin).map(|_| Noted::Nothing),
            };
            effects += u32::from(noted == Ok(Noted::Owed));
        } else {
            while queue.take_simulated().is_some() {}
            let rested = queue.is_settled();
            let status = [None, Some(b'I'), Some(b'T'), Some(b'E')][usize::from(side >> 1 & 3)];
            let received = queue.received(tag, status);
            assert!(rested || !queue.is_settled() || matches!(received, Ok(Received::Ready(..))));
        }
        let Settled { confirmed, failed, skipped } = queue.take_settled();
        effects -= confirmed + u32::from(failed) + skipped;
        assert!(queue.len() <= MAX_OWED && queue.readies() <= queue.len() && effects as usize <= queue.len());
        let _ = queue.owes();
    }
}

/// Bodies of messages: every parser takes any bytes.
pub fn bodies(data: &[u8]) {
    let fields = ErrorFields::parse(data);
    let mut out = Vec::new();
    fields.write_error(&mut out);
    assert_eq!(ErrorFields::parse(out.get(5..).unwrap_or_default()), fields);
    if let Ok(parse::Authentication::Sasl { mechanisms }) = parse::authentication(data) {
        assert!(parse::sasl_mechanisms(mechanisms).count() <= data.len());
    }
    if let Ok((_, options)) = parse::negotiate_protocol_version(data) {
        assert!(options.count() <= data.len());
    }
    let _ = parse::sasl_initial_response(data);
    let _ = parse::password(data);
    let _ = parse::query(data);
    let _ = parse::command_complete(data);
    let _ = parse::parameter_status(data);
    let _ = parse::backend_key_data(data);
    let _ = parse::ready_for_query(data);
    let text = String::from_utf8_lossy(data);
    if let LoginSecret::Scram(verifier) = LoginSecret::parse(&text) {
        assert_eq!(verifier.to_string().parse::<Verifier>().as_ref(), Ok(&*verifier));
    }
}

/// A client's login: nobody who does not exist gets in. The first byte chooses the method and the secret.
pub fn client_login(data: &[u8]) {
    let Some((choice, mut messages)) = data.split_first() else { return };
    let method = match choice & 3 {
        0 => Method::Trust,
        1 => Method::Plain,
        2 => Method::Md5,
        _ => Method::Scram,
    };
    let secret = match choice >> 2 & 3 {
        0 => None,
        1 => Some(LoginSecret::Plain(Password::new("pencil"))),
        2 => Some(LoginSecret::Md5(Md5Secret::derive(b"pencil", "ada"))),
        _ => verifier(),
    };
    let nobody = secret.is_none() && method != Method::Trust;
    let mock = MockSecret::new([3; 32], 1);
    let mut step = ClientLogin::start(method, "ada", secret, &mock, None, &[1; 32]);
    let mut most_sent = MOST_ADDED_BYTES;
    loop {
        let login = match step {
            Step::Continue { login, send } => {
                assert!(send.len() <= most_sent, "an answer far longer than the message");
                login
            }
            Step::Accepted { .. } => {
                assert!(!nobody, "let in somebody who does not exist");
                return;
            }
            Step::Refused(error) => {
                assert!(!error.response().is_empty());
                return;
            }
        };
        let Some((tag, body)) = next_message(&mut messages) else { return };
        most_sent = body.len() + MOST_ADDED_BYTES;
        step = login.on_message(tag, body);
    }
}

/// A login at a server: one that was asked for SCRAM and knows no key is never believed. The first byte
/// chooses the secret.
pub fn server_login(data: &[u8]) {
    let Some((choice, mut messages)) = data.split_first() else { return };
    let secret = match choice & 3 {
        0 => None,
        1 => Some(ServerSecret::Plain(Password::new("pencil"))),
        2 => Some(ServerSecret::Md5(Md5Secret::derive(b"pencil", "ada"))),
        _ => Some(ServerSecret::ScramKeys(ScramKeys { client_key: [1; 32], server_key: [2; 32] })),
    };
    let request = StartupRequest { user: "ada".into(), database: "shop".into(), parameters: Vec::new() };
    let Ok((mut login, _)) = ServerLogin::start(&request, secret) else { return };
    let mut scram = false;
    while let Some((tag, body)) = next_message(&mut messages) {
        match login.on_message(tag, body, &[1; 32]) {
            Ok(ServerStep::Continue { login: next, send }) => {
                assert!(send.len() <= body.len() + MOST_ADDED_BYTES, "an answer far longer than the message");
                scram |= send.windows(MECHANISM.len()).any(|window| window == MECHANISM.as_bytes());
                login = next;
            }
            Ok(ServerStep::Ready(_)) => {
                assert!(!scram, "believed a server that cannot have proven itself");
                return;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                return;
            }
        }
    }
}

/// Takes a message off the front: a tag, a length of two bytes, and at most so many bytes of body.
fn next_message<'a>(data: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let ([tag, high, low], rest) = data.split_first_chunk::<3>()?;
    let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
    let (body, rest) = rest.split_at(length);
    *data = rest;
    Some((*tag, body))
}

/// One iteration, so that it costs little beside the rest.
fn verifier() -> Option<LoginSecret> {
    Verifier::derive(b"pencil", b"salt", 1).ok().map(|verifier| LoginSecret::Scram(Arc::new(verifier)))
}
