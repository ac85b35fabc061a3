//! Messages that a server sends. Each function appends one message.

use super::{TransactionStatus, framed, put_text, tag};
use crate::secret::CancelKey;
use crate::startup::PROTOCOL_MAJOR;

/// Most columns a row may have (`MaxTupleAttributeNumber` of PostgreSQL); further ones are left out.
pub const MAX_COLUMNS: usize = 1664;

/// Type oids of PostgreSQL's catalogue.
pub mod oid {
    /// `boolean`
    pub const BOOL: u32 = 16;
    /// `bigint`
    pub const INT8: u32 = 20;
    /// `integer`
    pub const INT4: u32 = 23;
    /// `text`
    pub const TEXT: u32 = 25;
    /// `double precision`
    pub const FLOAT8: u32 = 701;
    /// `timestamp with time zone`
    pub const TIMESTAMPTZ: u32 = 1184;
    /// `numeric`
    pub const NUMERIC: u32 = 1700;
}

/// A column of a result in text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column<'a> {
    /// Its heading.
    pub name: &'a str,
    /// One of [`oid`].
    pub type_oid: u32,
}

/// Kinds of the Authentication message.
pub(crate) mod authentication {
    pub(crate) const OK: u32 = 0;
    pub(crate) const CLEARTEXT_PASSWORD: u32 = 3;
    pub(crate) const MD5_PASSWORD: u32 = 5;
    pub(crate) const SASL: u32 = 10;
    pub(crate) const SASL_CONTINUE: u32 = 11;
    pub(crate) const SASL_FINAL: u32 = 12;
}

/// AuthenticationOk: the login succeeded.
pub fn authentication_ok(out: &mut Vec<u8>) {
    authentication(out, authentication::OK, &[]);
}

/// AuthenticationCleartextPassword: asks for the password itself.
pub fn authentication_cleartext_password(out: &mut Vec<u8>) {
    authentication(out, authentication::CLEARTEXT_PASSWORD, &[]);
}

/// AuthenticationMD5Password: asks for the salted MD5 answer.
pub fn authentication_md5_password(out: &mut Vec<u8>, salt: [u8; 4]) {
    authentication(out, authentication::MD5_PASSWORD, &salt);
}

/// AuthenticationSASL: offers mechanisms, best first.
pub fn authentication_sasl(out: &mut Vec<u8>, mechanisms: &[&str]) {
    framed(out, tag::AUTHENTICATION, |out| {
        out.extend_from_slice(&authentication::SASL.to_be_bytes());
        for mechanism in mechanisms {
            put_text(out, mechanism);
        }
        out.push(0);
    });
}

/// AuthenticationSASLContinue: the mechanism's next challenge.
pub fn authentication_sasl_continue(out: &mut Vec<u8>, data: &[u8]) {
    authentication(out, authentication::SASL_CONTINUE, data);
}

/// AuthenticationSASLFinal: the mechanism's last word; AuthenticationOk follows.
pub fn authentication_sasl_final(out: &mut Vec<u8>, data: &[u8]) {
    authentication(out, authentication::SASL_FINAL, data);
}

fn authentication(out: &mut Vec<u8>, kind: u32, data: &[u8]) {
    framed(out, tag::AUTHENTICATION, |out| {
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(data);
    });
}

/// NegotiateProtocolVersion: the newest minor version of protocol 3 spoken here, and the options not known.
///
/// PostgreSQL writes the whole version where its manual says "minor", and libpq expects that.
pub fn negotiate_protocol_version<O: AsRef<str>>(out: &mut Vec<u8>, newest_minor: u16, options: &[O]) {
    framed(out, tag::NEGOTIATE_PROTOCOL_VERSION, |out| {
        let version = u32::from(PROTOCOL_MAJOR) << 16 | u32::from(newest_minor);
        out.extend_from_slice(&version.to_be_bytes());
        out.extend_from_slice(&u32::try_from(options.len()).unwrap_or(u32::MAX).to_be_bytes());
        for option in options {
            put_text(out, option.as_ref());
        }
    });
}

/// ParameterStatus: the value of a parameter that clients are told of.
pub fn parameter_status(out: &mut Vec<u8>, name: &str, value: &str) {
    framed(out, tag::PARAMETER_STATUS, |out| {
        put_text(out, name);
        put_text(out, value);
    });
}

/// BackendKeyData: what the client must name to cancel.
pub fn backend_key_data(out: &mut Vec<u8>, key: &CancelKey) {
    framed(out, tag::BACKEND_KEY_DATA, |out| {
        out.extend_from_slice(&key.process_id.to_be_bytes());
        out.extend_from_slice(key.secret.as_bytes());
    });
}

/// ReadyForQuery: all is answered.
pub fn ready_for_query(out: &mut Vec<u8>, status: TransactionStatus) {
    framed(out, tag::READY_FOR_QUERY, |out| out.push(status.as_byte()));
}

/// RowDescription of a result in text format, at most [`MAX_COLUMNS`] columns.
pub fn row_description(out: &mut Vec<u8>, columns: &[Column<'_>]) {
    let columns = columns.get(..MAX_COLUMNS).unwrap_or(columns);
    framed(out, tag::ROW_DESCRIPTION, |out| {
        put_count(out, columns.len());
        for column in columns {
            put_text(out, column.name);
            // No table and no column of a table stands behind it.
            out.extend_from_slice(&[0; 6]);
            out.extend_from_slice(&column.type_oid.to_be_bytes());
            out.extend_from_slice(&type_size(column.type_oid).to_be_bytes());
            // No type modifier.
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            // Text format.
            out.extend_from_slice(&[0; 2]);
        }
    });
}

/// DataRow in text format, `None` for NULL, at most [`MAX_COLUMNS`] values.
pub fn data_row<V: AsRef<str>>(out: &mut Vec<u8>, values: impl IntoIterator<Item = Option<V>>) {
    framed(out, tag::DATA_ROW, |out| {
        let start = out.len();
        put_count(out, 0);
        let mut count = 0;
        for value in values.into_iter().take(MAX_COLUMNS) {
            count += 1;
            let Some(value) = value else {
                out.extend_from_slice(&(-1_i32).to_be_bytes());
                continue;
            };
            let value = value.as_ref().as_bytes();
            out.extend_from_slice(&u32::try_from(value.len()).unwrap_or(u32::MAX).to_be_bytes());
            out.extend_from_slice(value);
        }
        if let Some(place) = out.get_mut(start..start + 2) {
            place.copy_from_slice(&u16::to_be_bytes(count));
        }
    });
}

/// CommandComplete with its command tag, as `SELECT 3`.
pub fn command_complete(out: &mut Vec<u8>, command_tag: &str) {
    framed(out, tag::COMMAND_COMPLETE, |out| put_text(out, command_tag));
}

/// EmptyQueryResponse: there was no statement to run.
pub fn empty_query_response(out: &mut Vec<u8>) {
    framed(out, tag::EMPTY_QUERY_RESPONSE, |_| ());
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
}

/// `typlen` of the catalogue.
fn type_size(type_oid: u32) -> i16 {
    match type_oid {
        oid::BOOL => 1,
        oid::INT4 => 4,
        oid::INT8 | oid::FLOAT8 | oid::TIMESTAMPTZ => 8,
        _ => -1,
    }
}
