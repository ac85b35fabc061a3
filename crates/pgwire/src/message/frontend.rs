//! Messages that a client sends. Each function appends one message.

use super::{framed, put_text, tag};

/// Query: statements in the simple protocol.
pub fn query(out: &mut Vec<u8>, sql: &str) {
    framed(out, tag::QUERY, |out| put_text(out, sql));
}

/// Sync: ends a batch of the extended protocol.
pub fn sync(out: &mut Vec<u8>) {
    framed(out, tag::SYNC, |_| ());
}

/// Parse: `rest` is all that follows the name.
pub fn parse(out: &mut Vec<u8>, name: &[u8], rest: &[u8]) {
    framed(out, tag::PARSE, |out| {
        out.extend_from_slice(name);
        out.push(0);
        out.extend_from_slice(rest);
    });
}

/// Close of a prepared statement.
pub fn close_statement(out: &mut Vec<u8>, name: &[u8]) {
    framed(out, tag::CLOSE, |out| {
        out.push(b'S');
        out.extend_from_slice(name);
        out.push(0);
    });
}

/// Execute of a portal, to its end.
pub fn execute(out: &mut Vec<u8>, portal: &str) {
    framed(out, tag::EXECUTE, |out| {
        put_text(out, portal);
        out.extend_from_slice(&[0; 4]);
    });
}

/// Terminate: the session is over.
pub fn terminate(out: &mut Vec<u8>) {
    framed(out, tag::TERMINATE, |_| ());
}

/// CopyFail: breaks off COPY IN; the server repeats the reason in its error.
pub fn copy_fail(out: &mut Vec<u8>, reason: &str) {
    framed(out, tag::COPY_FAIL, |out| put_text(out, reason));
}

/// PasswordMessage: a password or its MD5 answer. The bytes must not hold a zero byte.
pub fn password(out: &mut Vec<u8>, password: &[u8]) {
    framed(out, tag::PASSWORD, |out| {
        out.extend_from_slice(password);
        out.push(0);
    });
}

/// SASLInitialResponse: the mechanism chosen and its first message.
pub fn sasl_initial_response(out: &mut Vec<u8>, mechanism: &str, data: &[u8]) {
    framed(out, tag::PASSWORD, |out| {
        put_text(out, mechanism);
        out.extend_from_slice(&u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
        out.extend_from_slice(data);
    });
}

/// SASLResponse: the mechanism's next message.
pub fn sasl_response(out: &mut Vec<u8>, data: &[u8]) {
    framed(out, tag::PASSWORD, |out| out.extend_from_slice(data));
}
