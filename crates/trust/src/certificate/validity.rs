//! From when to when a certificate is dated: the one thing that is read from X.509 by ourselves (RFC 5280 §4.1.2.5).

use rustls::pki_types::CertificateDer;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
/// The version, where it stands.
const EXPLICIT_0: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Both ends, ms since 1970. `None`: damaged.
pub(super) fn validity_ms(certificate: &CertificateDer<'_>) -> Option<(u64, u64)> {
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (mut body, _) = element(certificate, SEQUENCE)?;
    if let Some((_, rest)) = element(body, EXPLICIT_0) {
        body = rest;
    }
    let (_serial, body) = element(body, INTEGER)?;
    let (_algorithm, body) = element(body, SEQUENCE)?;
    let (_issuer, body) = element(body, SEQUENCE)?;
    let (validity, _) = element(body, SEQUENCE)?;
    let (from, rest) = time_ms(validity)?;
    let (until, _) = time_ms(rest)?;
    Some((from, until))
}

/// The content of an element with this tag, and what comes behind it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = bytes.split_first()?;
    if found != tag {
        return None;
    }
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let count = usize::from(first & 0x7f);
        if !(1..=3).contains(&count) {
            return None;
        }
        let (digits, rest) = rest.split_at_checked(count)?;
        (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
    };
    rest.split_at_checked(length)
}

/// A time in either form, always in UTC and with seconds, and what comes behind it.
fn time_ms(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let ((year, digits), rest) = if let Some((text, rest)) = element(bytes, UTC_TIME) {
        let (year, digits) = text.split_at_checked(2)?;
        let year = number(year)?;
        // RFC 5280 §4.1.2.5.1: from 50 on it is the last century.
        ((if year >= 50 { 1900 + year } else { 2000 + year }, digits), rest)
    } else {
        let (text, rest) = element(bytes, GENERALIZED_TIME)?;
        let (year, digits) = text.split_at_checked(4)?;
        ((number(year)?, digits), rest)
    };
    let [b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b'Z'] = *digits else { return None };
    let two = |first, second| number(&[first, second]);
    let (month, day) = (two(b0, b1)?, two(b2, b3)?);
    let (hour, minute, second) = (two(b4, b5)?, two(b6, b7)?, two(b8, b9)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days(year, month, day)? * 86_400 + hour * 3_600 + minute * 60 + second;
    Some((seconds * 1_000, rest))
}

fn number(digits: &[u8]) -> Option<u64> {
    digits
        .iter()
        .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0')))
}

/// Days since 1970 of a date in the Gregorian calendar; 1970 for what was before.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    // The year begins in March, so that the leap day is its last.
    let year = if month <= 2 { year.checked_sub(1)? } else { year };
    let month = (month + 9) % 12;
    let since_0000 = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    Some(since_0000.saturating_sub(719_468))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CertificateRole, ROLE_CERTIFICATE_DAYS, RootKey};
    use proptest::prelude::*;

    const DAY_MS: u64 = 86_400_000;

    #[test]
    fn dates_are_those_that_were_written() {
        let root = RootKey::generate().unwrap();
        // Around a leap day, at the end of a century, and beyond the two-digit years.
        for now_ms in [1_709_164_799_000, 951_782_400_000, 1_893_456_000_000, 2_556_057_600_000] {
            let made = root.issue(CertificateRole::Api, &["localhost".to_owned()], now_ms).unwrap();
            let (from, until) = validity_ms(&made.chain()[0]).unwrap();
            assert_eq!(from, now_ms - 3_600_000, "{now_ms}");
            assert_eq!(until, from + ROLE_CERTIFICATE_DAYS * DAY_MS);
            assert_eq!(made.expires_at_ms(), Some(until));
        }
    }

    proptest! {
        #[test]
        fn damaged_bytes_are_refused_or_read_and_never_more(
            at in 0..200_usize, byte: u8, cut in 0..400_usize,
        ) {
            let root = RootKey::from_seed(&[3; 32]).unwrap();
            let mut bytes = root.certificate(1_700_000_000_000).unwrap().der().to_vec();
            bytes[at] = byte;
            bytes.truncate(cut);
            let _ = validity_ms(&CertificateDer::from(bytes));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
            let _ = validity_ms(&CertificateDer::from(bytes));
        }
    }
}
