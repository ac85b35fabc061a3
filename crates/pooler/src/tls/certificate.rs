//! The little of X.509 that rustls does not tell: by which hash a certificate is bound to a channel, and how long it holds.

use aws_lc_rs::digest::{self, Algorithm};
use pgwire::scram::ChannelBinding;

const SEQUENCE: u8 = 0x30;
const OBJECT_IDENTIFIER: u8 = 0x06;
const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// `[0] EXPLICIT`: the version of a certificate, the hash of RSASSA-PSS.
const CONTEXT_0: u8 = 0xa0;

/// `tls-server-end-point` (RFC 5929 §4.1): the hash of the certificate by the hash of its signature, but SHA-256 in place
/// of MD5 and SHA-1. None where the signature has no hash of its own, as with Ed25519: then it is undefined.
pub(super) fn channel_binding(certificate: &[u8]) -> Option<ChannelBinding> {
    let algorithm = signature_hash(certificate)?;
    Some(ChannelBinding::tls_server_end_point(digest::digest(algorithm, certificate).as_ref()))
}

/// Whether `now`, as `YYYYMMDDHHMMSS`, lies within the certificate's time.
pub(super) fn is_valid_at(certificate: &[u8], now: &str) -> bool {
    validity(certificate).is_some_and(|(from, until)| from.as_str() <= now && now <= until.as_str())
}

fn signature_hash(certificate: &[u8]) -> Option<&'static Algorithm> {
    let (mut fields, _) = element(certificate, SEQUENCE)?;
    (_, fields) = element(fields, SEQUENCE)?;
    let (algorithm, _) = element(fields, SEQUENCE)?;
    let (identifier, parameters) = element(algorithm, OBJECT_IDENTIFIER)?;
    Some(match identifier {
        // 1.2.840.113549.1.1: md5, sha1, sha256, sha384, sha512 with RSA.
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, kind] => match kind {
            4 | 5 | 11 => &digest::SHA256,
            12 => &digest::SHA384,
            13 => &digest::SHA512,
            10 => pss_hash(parameters)?,
            _ => return None,
        },
        // 1.2.840.10045.4: ECDSA with SHA-1, then with SHA-256, -384, -512.
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01] | [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 2] => {
            &digest::SHA256
        }
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 3] => &digest::SHA384,
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 4] => &digest::SHA512,
        _ => return None,
    })
}

/// The hash of RSASSA-PSS stands in its parameters (RFC 4055 §3.1); without one it is SHA-1.
fn pss_hash(parameters: &[u8]) -> Option<&'static Algorithm> {
    let (parameters, _) = element(parameters, SEQUENCE)?;
    let Some((hash, _)) = element(parameters, CONTEXT_0) else { return Some(&digest::SHA256) };
    let (hash, _) = element(hash, SEQUENCE)?;
    match element(hash, OBJECT_IDENTIFIER)?.0 {
        // 2.16.840.1.101.3.4.2
        [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 2] => Some(&digest::SHA384),
        [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 3] => Some(&digest::SHA512),
        _ => Some(&digest::SHA256),
    }
}

/// From and until, as `YYYYMMDDHHMMSS`.
fn validity(certificate: &[u8]) -> Option<(String, String)> {
    let (fields, _) = element(certificate, SEQUENCE)?;
    let (mut fields, _) = element(fields, SEQUENCE)?;
    if let Some((_, rest)) = element(fields, CONTEXT_0) {
        fields = rest;
    }
    // Serial number, algorithm, issuer.
    for tag in [INTEGER, SEQUENCE, SEQUENCE] {
        (_, fields) = element(fields, tag)?;
    }
    let (validity, _) = element(fields, SEQUENCE)?;
    let (from, rest) = time(validity)?;
    let (until, _) = time(rest)?;
    Some((from, until))
}

fn time(bytes: &[u8]) -> Option<(String, &[u8])> {
    if let Some((text, rest)) = element(bytes, GENERALIZED_TIME) {
        return Some((std::str::from_utf8(text).ok()?.strip_suffix('Z')?.to_owned(), rest));
    }
    let (text, rest) = element(bytes, UTC_TIME)?;
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    // RFC 5280 §4.1.2.5.1: below 50 it is this century.
    let century = if text.get(..2)? < "50" { "20" } else { "19" };
    Some((format!("{century}{text}"), rest))
}

/// The content of the element with this tag, and what stands behind it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, first], rest) = bytes.split_first_chunk::<2>()?;
    if found != tag {
        return None;
    }
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (length.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests;
