//! IPv4 addresses in all their notations, as the URL standard's "IPv4 parser" reads them.

use std::net::Ipv4Addr;

/// Parts of an address at most.
const PARTS_MAX: usize = 4;

/// Whether the last label makes the whole host an address: decimal digits, or `0x` and hexadecimal ones.
pub(super) fn is_number(label: &str) -> bool {
    let decimal = !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit());
    decimal || hexadecimal(label).is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// One to four numbers, each decimal, octal (`0…`) or hexadecimal (`0x…`); the last fills what the others leave.
pub(super) fn ipv4(text: &str) -> Option<Ipv4Addr> {
    if text.split('.').count() > PARTS_MAX {
        return None;
    }
    let parts: Vec<u64> = text.split('.').map(number).collect::<Option<_>>()?;
    let (last, front) = parts.split_last()?;
    if front.iter().any(|part| *part > 255) || *last >= 1 << (8 * (PARTS_MAX + 1 - parts.len())) {
        return None;
    }
    let front = front.iter().zip(0..).fold(0, |sum, (part, place)| sum | (part << (24 - 8 * place)));
    u32::try_from(front | last).ok().map(Ipv4Addr::from_bits)
}

fn number(part: &str) -> Option<u64> {
    let (digits, radix) = match hexadecimal(part) {
        Some("") => return Some(0),
        Some(digits) => (digits, 16),
        None if part.len() > 1 && part.starts_with('0') => (&part[1..], 8),
        None => (part, 10),
    };
    // `from_str_radix` would take a sign.
    if digits.bytes().any(|byte| !byte.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

fn hexadecimal(label: &str) -> Option<&str> {
    label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"))
}
