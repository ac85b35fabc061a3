//! Hides the values of `password` in lines that are printed.

use std::ops::Range;

/// How far before a line an open password is looked for, in bytes.
const LOOK_BACK_BYTES: usize = 4096;

/// The line `line` of `text` with each byte of a password replaced by `*`. Hides too much rather than too
/// little: an unquoted password ends with its line.
pub(super) fn without_secrets(text: &str, line: Range<usize>) -> String {
    let mut masked = String::with_capacity(line.len());
    let secrets = secrets(text, &line);
    for (offset, character) in text[line.clone()].char_indices() {
        let at = line.start + offset;
        if secrets.iter().any(|secret| secret.contains(&at)) {
            // As many bytes as before, so that the offsets stay.
            masked.extend(std::iter::repeat_n('*', character.len_utf8()));
        } else {
            masked.push(character);
        }
    }
    masked
}

fn secrets(text: &str, line: &Range<usize>) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut secrets = Vec::new();
    let mut at = line.start.saturating_sub(LOOK_BACK_BYTES);
    while let Some(found) = find_ignoring_case(&bytes[at..line.end], b"password") {
        at += found + b"password".len();
        if let Some(secret) = value_after(bytes, at) {
            secrets.push(secret);
        }
    }
    secrets
}

fn find_ignoring_case(bytes: &[u8], word: &[u8]) -> Option<usize> {
    bytes.windows(word.len()).position(|window| window.eq_ignore_ascii_case(word))
}

/// The value behind a key that ends at `at`: `= value`, perhaps with the key's closing quote before.
fn value_after(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let skip = |from: usize, blanks: &[u8]| {
        from + bytes[from..].iter().take_while(|byte| blanks.contains(byte)).count()
    };
    let equals = skip(at, b" \t\"'");
    if bytes.get(equals) != Some(&b'=') {
        return None;
    }
    let start = skip(equals + 1, b" \t");
    let end = match bytes.get(start) {
        Some(&quote @ (b'"' | b'\'')) => match closing(bytes, start, quote) {
            Some(end) if bytes.get(end).is_none_or(|byte| b" \t\r\n\"',}".contains(byte)) => end,
            Some(end) => end_of_line(bytes, end),
            None if may_span_lines(&bytes[..=start]) || bytes[start..].starts_with(&[quote; 3]) => {
                bytes.len()
            }
            None => end_of_line(bytes, start),
        },
        _ => end_of_line(bytes, start),
    };
    Some(start..end)
}

/// Whether a string of TOML that spans lines may be open behind `before`.
fn may_span_lines(before: &[u8]) -> bool {
    before.windows(3).any(|window| window == b"\"\"\"" || window == b"'''")
}

fn end_of_line(bytes: &[u8], from: usize) -> usize {
    bytes[from..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |length| from + length)
}

/// Behind the quote that closes the one at `start`, with doubled and backslashed ones skipped.
fn closing(bytes: &[u8], start: usize, quote: u8) -> Option<usize> {
    if bytes[start..].starts_with(&[quote; 3]) {
        let from = start + 3;
        return bytes[from..]
            .windows(3)
            .position(|window| window == [quote; 3])
            .map(|found| from + found + 3);
    }
    let end = if may_span_lines(&bytes[..start]) { bytes.len() } else { end_of_line(bytes, start) };
    let mut at = start + 1;
    while at < end {
        match bytes[at] {
            b'\\' if quote == b'"' => at += 2,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::without_secrets;

    fn masked(text: &str) -> String {
        without_secrets(text, 0..text.len())
    }

    #[test]
    fn quoted_password_is_hidden_and_the_rest_shown() {
        assert_eq!(masked("d = password='it''s' port=1"), "d = password=******* port=1");
        assert_eq!(masked("password = \"abc\""), "password = *****");
        assert_eq!(masked(r#"x = { password = "a\"b", port = 1 }"#), "x = { password = ******, port = 1 }");
    }

    #[test]
    fn unquoted_or_broken_password_hides_the_rest_of_the_line() {
        assert_eq!(masked("PASSWORD=ab cd"), "PASSWORD=*****");
        assert_eq!(masked("password='a'b c"), "password=******");
        assert_eq!(masked("password='a b c"), "password=******");
        assert_eq!(masked("password='a b c\nport = '1'"), "password=******\nport = '1'");
    }

    #[test]
    fn password_that_began_on_an_earlier_line_is_hidden() {
        let text = "password = \"\"\"one\ntwo\"\"\"\nport = 1";
        assert_eq!(without_secrets(text, 18..24), "******");
        assert_eq!(without_secrets(text, 25..33), "port = 1");
        let text = "a = \"\"\"\nport=1 password='one\ntwo'\nuser=b\"\"\"";
        assert_eq!(without_secrets(text, 29..33), "****");
        assert_eq!(without_secrets(text, 34..43), "user=b\"\"\"");
    }
}
