//! First packets that we send ourselves, to a server.

use super::{
    CANCEL_REQUEST_CODE, GSS_ENCRYPTION_REQUEST_CODE, MAX_STARTUP_PACKET, PROTOCOL_MAJOR, SSL_REQUEST_CODE,
    StartupError, WORD_BYTES,
};

/// Asks a server for TLS.
#[must_use]
pub fn ssl_request() -> Vec<u8> {
    packet(SSL_REQUEST_CODE, &[])
}

/// Asks a server for GSSAPI encryption.
#[must_use]
pub fn gss_encryption_request() -> Vec<u8> {
    packet(GSS_ENCRYPTION_REQUEST_CODE, &[])
}

/// Asks a server, on a connection of its own, to cancel what the session with this key runs.
#[must_use]
pub fn cancel_request(process_id: i32, secret: &[u8]) -> Vec<u8> {
    packet(CANCEL_REQUEST_CODE, &[&process_id.to_be_bytes(), secret].concat())
}

/// Opens a session at a server with protocol 3.0; `user` and `database` are parameters like others.
///
/// # Errors
/// A name or value holds a zero byte, or the packet would be longer than a server accepts.
/// The fault is in the configuration or in what a client asked for; trying again does not help.
pub fn startup_message<N: AsRef<str>, V: AsRef<str>>(
    parameters: impl IntoIterator<Item = (N, V)>,
) -> Result<Vec<u8>, StartupError> {
    let mut body = Vec::new();
    for (name, value) in parameters {
        let (name, value) = (name.as_ref(), value.as_ref());
        // An empty name would end the list early.
        if name.is_empty() {
            return Err(StartupError::Layout);
        }
        if name.contains('\0') || value.contains('\0') {
            return Err(StartupError::ZeroByte { name: name.to_owned() });
        }
        for text in [name, value] {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
    }
    body.push(0);
    let length = body.len() + 2 * WORD_BYTES;
    if length > MAX_STARTUP_PACKET + WORD_BYTES {
        return Err(StartupError::Length { length });
    }
    Ok(packet(u32::from(PROTOCOL_MAJOR) << 16, &body))
}

fn packet(code: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 2 * WORD_BYTES).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), &code.to_be_bytes(), body].concat()
}
