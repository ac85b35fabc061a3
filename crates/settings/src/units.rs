//! Numbers with units as people write them.

use std::time::Duration;

/// Longest duration that is taken, in seconds: some 30 years. Keeps sums of times far from overflow.
pub const MAX_DURATION_S: u64 = 1_000_000_000;

/// A duration: seconds as in PgBouncer (`4`, `0.5`), or with a unit: `us`, `ms`, `s`, `min`, `h`, `d`.
///
/// # Errors
/// The reason, to follow "because".
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let unit_us: u64 = match unit {
        "us" => 1,
        "ms" => 1_000,
        "" | "s" => 1_000_000,
        "min" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return Err("a duration is a number of seconds, or a number with us, ms, s, min, h or d".into()),
    };
    let us = scaled(number, unit_us).ok_or("a duration is a number such as 4, 0.5 or 500ms")?;
    if us > MAX_DURATION_S * 1_000_000 {
        return Err(format!("the longest duration is {MAX_DURATION_S} s"));
    }
    Ok(Duration::from_micros(us))
}

/// A number of bytes: plain, or with `B`, `kB`, `MB`, `GB` (powers of 1024, case ignored).
///
/// # Errors
/// The reason, to follow "because".
pub fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let unit_bytes: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1 << 10,
        "mb" => 1 << 20,
        "gb" => 1 << 30,
        _ => return Err("a size is a number of bytes, or a number with kB, MB or GB".into()),
    };
    scaled(number, unit_bytes).ok_or_else(|| "a size is a number such as 65536 or 64kB".into())
}

/// A whole number from 0.
///
/// # Errors
/// The reason, to follow "because".
pub fn integer(text: &str) -> Result<u64, String> {
    if let Some(digits) = text.strip_prefix('-')
        && is_digits(digits)
    {
        return Err("it must not be negative".into());
    }
    if !is_digits(text) {
        return Err("a whole number is expected".into());
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err("a number with a leading zero is octal in PgBouncer; write it in decimal".into());
    }
    text.parse().map_err(|_| "the number is too large".into())
}

/// On or off: `1 0 yes no on off true false`, case ignored.
///
/// # Errors
/// The reason, to follow "because".
pub fn boolean(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "yes" | "on" | "true" => Ok(true),
        "0" | "no" | "off" | "false" => Ok(false),
        _ => Err("it is either 1 or 0 (or yes, no, on, off, true, false)".into()),
    }
}

/// The mode of a file, in octal: `0777`.
///
/// # Errors
/// The reason, to follow "because".
pub fn file_mode(text: &str) -> Result<u32, String> {
    let reason = "a file mode is octal, from 0000 to 0777";
    let octal = text.len() >= 2 && text.starts_with('0') && is_digits(text) || text == "0";
    match u32::from_str_radix(text, 8) {
        Ok(mode) if octal && mode <= 0o777 => Ok(mode),
        _ => Err(reason.into()),
    }
}

/// Seconds as PgBouncer shows them: `120`, `0.5`.
#[must_use]
pub fn show_duration(duration: Duration) -> String {
    let us = duration.subsec_micros();
    if us == 0 {
        return duration.as_secs().to_string();
    }
    format!("{}.{us:06}", duration.as_secs()).trim_end_matches('0').to_owned()
}

fn split(text: &str) -> (&str, &str) {
    let end =
        text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// `number` × `unit` without rounding through floating point; what is below one is cut off.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    if !has_digits || !whole.chars().chain(fraction.chars()).all(|character| character.is_ascii_digit()) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // 18 digits are finer than any unit here.
    let fraction = fraction.get(..18).unwrap_or(fraction);
    let numerator: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let part = u64::try_from(numerator * u128::from(unit) / 10_u128.pow(u32::try_from(fraction.len()).ok()?))
        .ok()?;
    whole.checked_mul(unit)?.checked_add(part)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests;
