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
    let own = |parameter: &Option<&str>| parameter.map(|value| value.as_bytes().to_vec());
    let parameters: Vec<_> = parameters.iter().map(own).collect();
    bind_formatted(portal, statement, &[], &parameters, &[])
}

/// Parse with the types of parameters (their OIDs; 0 is "find out").
#[must_use]
pub fn parse_typed(name: &str, sql: &str, types: &[u32]) -> Vec<u8> {
    let mut body = [text(name), text(sql)].concat();
    body.extend(count(types.len()));
    body.extend(types.iter().flat_map(|oid| oid.to_be_bytes()));
    message(b'P', &body)
}

/// Bind with the formats of parameters and of results (0 is text, 1 is binary; none is text for all, one is for all).
/// A parameter of `None` is NULL.
#[must_use]
pub fn bind_formatted(
    portal: &str,
    statement: &str,
    formats: &[u16],
    parameters: &[Option<Vec<u8>>],
    result_formats: &[u16],
) -> Vec<u8> {
    let mut body = [text(portal), text(statement)].concat();
    body.extend(all_formats(formats));
    body.extend(values(parameters));
    body.extend(all_formats(result_formats));
    message(b'B', &body)
}

/// FunctionCall of a function by its OID; formats as in [`bind_formatted`].
#[must_use]
pub fn function_call(
    function: u32,
    formats: &[u16],
    arguments: &[Option<Vec<u8>>],
    result_format: u16,
) -> Vec<u8> {
    let mut body = function.to_be_bytes().to_vec();
    body.extend(all_formats(formats));
    body.extend(values(arguments));
    body.extend(result_format.to_be_bytes());
    message(b'F', &body)
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

/// How many, then each.
fn all_formats(formats: &[u16]) -> Vec<u8> {
    let mut bytes = count(formats.len()).to_vec();
    bytes.extend(formats.iter().flat_map(|format| format.to_be_bytes()));
    bytes
}

/// How many, then each with its length (-1 is NULL).
fn values(values: &[Option<Vec<u8>>]) -> Vec<u8> {
    let mut bytes = count(values.len()).to_vec();
    for value in values {
        match value {
            Some(value) => {
                bytes.extend(length(value.len()));
                bytes.extend(value);
            }
            None => bytes.extend((-1_i32).to_be_bytes()),
        }
    }
    bytes
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
