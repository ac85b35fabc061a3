//! What any input must not break, as plain functions of bytes: for properties, and for a fuzzer.

use crate::http::response::Behind;
use crate::http::{Body, HeadError, MAX_HEAD_BYTES, MAX_HEADERS, Request, Response, Way, answer};
use crate::socks::{self, MAX_MESSAGE_BYTES, SocksError};

/// A client's bytes as SOCKS5: no message waits for more than its bound, and none is read differently for being split.
pub fn socks_client(data: &[u8]) {
    incremental(data, socks::greeting);
    incremental(data, |bytes| {
        Ok(socks::login(bytes)?.map(|(login, taken)| ((login.name, login.password), taken)))
    });
    if data.get(3).is_some_and(|address_type| matches!(address_type, 1 | 3 | 4)) {
        incremental(data, socks::request);
    }
    if let Ok(Some((Ok(target), _))) = socks::request(data) {
        assert_eq!(target.to_string().parse().as_ref(), Ok(&target));
        assert_ne!(target.port, 0);
    }
}

fn incremental<'data, T: PartialEq + std::fmt::Debug>(
    data: &'data [u8],
    read: impl Fn(&'data [u8]) -> Result<Option<(T, usize)>, SocksError>,
) {
    let whole = read(data);
    match &whole {
        Ok(None) => assert!(data.len() < MAX_MESSAGE_BYTES, "waits for more than the longest message"),
        Ok(Some((_, taken))) => {
            assert!(*taken <= data.len() && *taken <= MAX_MESSAGE_BYTES);
            assert_eq!(read(data.get(..*taken).unwrap_or_default()), whole);
            assert_eq!(read(data.get(..taken - 1).unwrap_or_default()), Ok(None));
        }
        Err(_) => {}
    }
}

/// A client's bytes as an HTTP request: bounded, the same however they are split, and what is passed on is a request that
/// has nothing of this hop and is read as the same.
pub fn http_request(data: &[u8]) {
    let (request, length) = match Request::parse(data) {
        Ok(Some(read)) => read,
        Ok(None) => {
            assert!(data.len() < MAX_HEAD_BYTES, "waits for more than the longest head");
            return;
        }
        Err(error) => {
            let refusal = error.into();
            assert!(answer::refused(&refusal, Behind::Close).len() < 1_024);
            return;
        }
    };
    assert!(length <= MAX_HEAD_BYTES && request.head.headers.len() <= MAX_HEADERS);
    assert!(matches!(Request::parse(data.get(..length - 1).unwrap_or_default()), Ok(None)));
    let _ = (request.login(), request.keeps_alive());
    match request.way() {
        Ok(Way::Forward { authority, path, .. }) => {
            let mut out = Vec::new();
            request.write_forwarded(authority, path, &mut out);
            let (forwarded, taken) = match Request::parse(&out) {
                Ok(Some(read)) => read,
                // A head that was just short enough may be too long with what is added.
                Err(HeadError::TooLong | HeadError::TooManyHeaders) => return,
                other => unreachable!("what is passed on is no request: {other:?}"),
            };
            assert_eq!(taken, out.len());
            assert_eq!(forwarded.body, request.body, "two readers, two bodies");
            assert_eq!((forwarded.method, forwarded.version), (request.method, request.version));
            assert_eq!(forwarded.head.values("host").count(), 1);
            for gone in ["proxy-authorization", "proxy-connection", "upgrade", "keep-alive", "te"] {
                assert_eq!(forwarded.head.values(gone).count(), 0, "{gone} is passed on");
            }
            assert!(!forwarded.keeps_alive());
        }
        Ok(Way::Tunnel(target)) => assert_eq!(target.to_string().parse(), Ok(target)),
        Err(refusal) => assert!(answer::refused(&refusal, Behind::Close).len() < 1_024),
    }
    body(request.body, data.get(length..).unwrap_or_default());
}

/// A target's bytes as an HTTP answer.
pub fn http_response(data: &[u8]) {
    let Ok(Some((response, length))) = Response::parse(data) else { return };
    let Ok(framing) = response.body("GET") else { return };
    let mut out = Vec::new();
    response.write_forwarded(Behind::KeepAlive, &mut out);
    match Response::parse(&out) {
        Ok(Some((forwarded, taken))) => {
            assert_eq!((taken, forwarded.status), (out.len(), response.status));
            assert_eq!(forwarded.body("GET"), Ok(framing), "two readers, two bodies");
        }
        Err(HeadError::TooLong | HeadError::TooManyHeaders) => {}
        other => unreachable!("what is passed on is no answer: {other:?}"),
    }
    body(framing, data.get(length..).unwrap_or_default());
}

/// A body ends at the same byte however it is split.
fn body(framing: Body, data: &[u8]) {
    let mut whole = framing;
    let at_once = whole.take(data);
    let mut split = framing;
    let mut taken = 0;
    for byte in data.chunks(1) {
        match split.take(byte) {
            Ok(0) => break,
            Ok(count) => taken += count,
            Err(error) => {
                assert_eq!(at_once, Err(error));
                return;
            }
        }
    }
    assert_eq!((at_once, whole), (Ok(taken), split));
}

#[cfg(test)]
mod tests;
