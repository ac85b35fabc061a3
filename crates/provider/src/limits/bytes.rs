//! Amounts of bytes as people write them.

use std::fmt;
use std::str::FromStr;

/// So many bytes. Reads `100GB`, `1.5 TB`, `512MiB`, `1000`; `kB` to `PB` are powers of 1000, `KiB` to `PiB` of 1024.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteCount(pub u64);

/// Why a text is no amount of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no amount of bytes: write a number and a unit, such as 100GB, 1.5TB or 512MiB")]
pub struct ByteCountError;

const UNITS: [(&str, u64); 11] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("PB", 1_000_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("PiB", 1 << 50),
];
/// Decimal places that are read.
const PLACES_MAX: usize = 6;

impl FromStr for ByteCount {
    type Err = ByteCountError;

    fn from_str(text: &str) -> Result<Self, ByteCountError> {
        let text = text.trim();
        let end = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
        let (number, unit) = (&text[..end], text[end..].trim());
        let factor = match unit {
            "" => 1,
            unit => {
                let known = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
                known.map(|(_, factor)| *factor).ok_or(ByteCountError)?
            }
        };
        let (whole, places) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || places.len() > PLACES_MAX || (number.contains('.') && places.is_empty()) {
            return Err(ByteCountError);
        }
        let digits: u128 = format!("{whole}{places}").parse().map_err(|_| ByteCountError)?;
        let scale = 10_u128.pow(u32::try_from(places.len()).unwrap_or(0));
        let bytes = digits.checked_mul(factor.into()).ok_or(ByteCountError)? / scale;
        u64::try_from(bytes).map(Self).map_err(|_| ByteCountError)
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fitting = UNITS[..6].iter().rev().find(|(_, factor)| self.0 >= *factor);
        match fitting {
            None | Some((_, 1)) => write!(out, "{} B", self.0),
            Some((unit, factor)) => {
                let tenths = u128::from(self.0) * 10 / u128::from(*factor);
                write!(out, "{}.{} {unit}", tenths / 10, tenths % 10)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_people_write_them() {
        let cases = [
            ("100GB", 100_000_000_000),
            ("100 gb", 100_000_000_000),
            ("1.5TB", 1_500_000_000_000),
            ("512MiB", 512 << 20),
            ("0", 0),
            ("1000", 1000),
            ("0.000001kB", 0),
        ];
        for (text, bytes) in cases {
            assert_eq!(text.parse(), Ok(ByteCount(bytes)), "{text}");
        }
        for text in [
            "",
            "GB",
            "1.GB",
            ".5GB",
            "-1GB",
            "1..5GB",
            "1XB",
            "1e9",
            "18446744073709551616",
            "99999PB",
            "1 G B",
        ] {
            assert!(text.parse::<ByteCount>().is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_are_shown_with_one_place() {
        for (bytes, text) in [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (1_990_000, "1.9 MB")] {
            assert_eq!(ByteCount(bytes).to_string(), text);
        }
        assert_eq!(ByteCount(u64::MAX).to_string(), "18446.7 PB");
    }
}
