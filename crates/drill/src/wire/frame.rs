//! Messages of the client, as bytes to send whole, in pieces, or spoilt.

/// A typed message: type byte, length (which counts itself), body.
#[must_use]
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(length(body.len() + 4));
    bytes.extend(body);
    bytes
}

/// StartupMessage of a protocol version (3.0 is `(3, 0)`) with parameters.
#[must_use]
pub fn startup(version: (u16, u16), parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(version.0.to_be_bytes());
    body.extend(version.1.to_be_bytes());
    for (name, value) in parameters {
        body.extend(text(name));
        body.extend(text(value));
    }
    body.push(0);
    untyped(&body)
}

/// SSLRequest.
#[must_use]
pub fn ssl_request() -> Vec<u8> {
    special_request(5679, &[])
}

/// GSSENCRequest.
#[must_use]
pub fn gss_request() -> Vec<u8> {
    special_request(5680, &[])
}

/// CancelRequest: process id and secret as the server gave them (the secret has 4 bytes in protocol 3.0, up to 256 in 3.2).
#[must_use]
pub fn cancel_request(process_id: u32, secret: &[u8]) -> Vec<u8> {
    special_request(5678, &[&process_id.to_be_bytes(), secret].concat())
}

/// Query (simple protocol).
#[must_use]
pub fn query(sql: &str) -> Vec<u8> {
    message(b'Q', &text(sql))
}

/// Parse with no parameter types.
#[must_use]
pub fn parse(name: &str, sql: &str) -> Vec<u8> {
    message(b'P', &[&text(name)[..], &text(sql), &[0, 0]].concat())
}

/// Bind with parameters in text (`None` is NULL) and results in text.
#[must_use]
pub fn bind(portal: &str, statement: &str, parameters: &[Option<&str>]) -> Vec<u8> {
    let mut body = [text(portal), text(statement)].concat();
    body.extend([0, 0]);
    body.extend(count(parameters.len()));
    for parameter in parameters {
        match parameter {
            Some(value) => {
                body.extend(length(value.len()));
                body.extend(value.as_bytes());
            }
            None => body.extend((-1_i32).to_be_bytes()),
        }
    }
    body.extend([0, 0]);
    message(b'B', &body)
}

/// Describe of a statement.
#[must_use]
pub fn describe_statement(name: &str) -> Vec<u8> {
    message(b'D', &[b"S", &text(name)[..]].concat())
}

/// Describe of a portal.
#[must_use]
pub fn describe_portal(name: &str) -> Vec<u8> {
    message(b'D', &[b"P", &text(name)[..]].concat())
}

/// Execute; `max_rows` of 0 means all.
#[must_use]
pub fn execute(portal: &str, max_rows: u32) -> Vec<u8> {
    message(b'E', &[&text(portal)[..], &max_rows.to_be_bytes()].concat())
}

/// Close of a statement.
#[must_use]
pub fn close_statement(name: &str) -> Vec<u8> {
    message(b'C', &[b"S", &text(name)[..]].concat())
}

/// Close of a portal.
#[must_use]
pub fn close_portal(name: &str) -> Vec<u8> {
    message(b'C', &[b"P", &text(name)[..]].concat())
}

/// Parse, Bind, Describe, Execute and Sync of the unnamed statement.
#[must_use]
pub fn extended_query(sql: &str, parameters: &[Option<&str>]) -> Vec<u8> {
    [parse("", sql), bind("", "", parameters), describe_portal(""), execute("", 0), sync()].concat()
}

/// Sync.
#[must_use]
pub fn sync() -> Vec<u8> {
    message(b'S', &[])
}

/// Flush.
#[must_use]
pub fn flush() -> Vec<u8> {
    message(b'H', &[])
}

/// Terminate.
#[must_use]
pub fn terminate() -> Vec<u8> {
    message(b'X', &[])
}

/// CopyData.
#[must_use]
pub fn copy_data(bytes: &[u8]) -> Vec<u8> {
    message(b'd', bytes)
}

/// CopyDone.
#[must_use]
pub fn copy_done() -> Vec<u8> {
    message(b'c', &[])
}

/// CopyFail.
#[must_use]
pub fn copy_fail(reason: &str) -> Vec<u8> {
    message(b'f', &text(reason))
}

/// PasswordMessage.
#[must_use]
pub fn password(password: &str) -> Vec<u8> {
    message(b'p', &text(password))
}

fn special_request(code: u16, rest: &[u8]) -> Vec<u8> {
    untyped(&[&1234_u16.to_be_bytes()[..], &code.to_be_bytes(), rest].concat())
}

fn untyped(body: &[u8]) -> Vec<u8> {
    let mut bytes = length(body.len() + 4).to_vec();
    bytes.extend(body);
    bytes
}

fn text(value: &str) -> Vec<u8> {
    [value.as_bytes(), &[0]].concat()
}

/// Longer than the protocol can say becomes the longest that it can: the peer has to refuse it.
fn length(bytes: usize) -> [u8; 4] {
    i32::try_from(bytes).unwrap_or(i32::MAX).to_be_bytes()
}

fn count(items: usize) -> [u8; 2] {
    u16::try_from(items).unwrap_or(u16::MAX).to_be_bytes()
}
