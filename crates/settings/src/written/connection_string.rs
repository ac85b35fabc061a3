//! `host=… port=… dbname='with space'`, with PgBouncer's quoting: `''` within quotes is one quote.

use super::Entry;
use crate::source::Place;
use std::ops::Range;

/// One `key=value` of a connection string; ranges are bytes of the string.
struct Pair {
    key: String,
    value: String,
    key_range: Range<usize>,
    value_range: Range<usize>,
}

/// What is wrong, and where. Does not cite the text, which may be part of a password.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    pub(crate) at: Range<usize>,
    pub(crate) reason: &'static str,
}

/// The values that `text` sets, in order; `place` is where a range of its bytes stands.
pub(super) fn entries(text: &str, place: impl Fn(Range<usize>) -> Place) -> Result<Vec<Entry>, SyntaxError> {
    let entry = |pair: Pair| Entry {
        key: pair.key,
        value: pair.value,
        is_array: false,
        key_place: place(pair.key_range),
        place: place(pair.value_range),
    };
    Ok(parse(text)?.into_iter().map(entry).collect())
}

/// The pairs of `text`, in order.
fn parse(text: &str) -> Result<Vec<Pair>, SyntaxError> {
    let mut pairs = Vec::new();
    let mut at = skip_blanks(text, 0);
    while at < text.len() {
        let (pair, next) = pair(text, at)?;
        pairs.push(pair);
        at = skip_blanks(text, next);
    }
    Ok(pairs)
}

fn pair(text: &str, start: usize) -> Result<(Pair, usize), SyntaxError> {
    let key_end = find(text, start, |byte| byte == b'=' || is_blank(byte));
    let equals = skip_blanks(text, key_end);
    if text.as_bytes().get(equals) != Some(&b'=') {
        let reason = "a connection string is a list of key=value; values with spaces need single quotes";
        return Err(SyntaxError { at: start..key_end, reason });
    }
    if key_end == start {
        return Err(SyntaxError { at: start..start + 1, reason: "there is no key before `=`" });
    }
    let value_start = skip_blanks(text, equals + 1);
    let (value, value_end) = value(text, value_start)?;
    if value.is_empty() {
        let at = start..value_end;
        return Err(SyntaxError { at, reason: "a value must not be empty here; leave the key out instead" });
    }
    let pair = Pair {
        key: text[start..key_end].to_owned(),
        value,
        key_range: start..key_end,
        value_range: value_start..value_end,
    };
    Ok((pair, value_end))
}

fn value(text: &str, start: usize) -> Result<(String, usize), SyntaxError> {
    if text.as_bytes().get(start) != Some(&b'\'') {
        let end = find(text, start, is_blank);
        return Ok((text[start..end].to_owned(), end));
    }
    let mut value = String::new();
    let mut at = start + 1;
    loop {
        let quote = find(text, at, |byte| byte == b'\'');
        if quote == text.len() {
            return Err(SyntaxError {
                at: start..start + 1,
                reason: "the quote that opens here is never closed",
            });
        }
        value.push_str(&text[at..quote]);
        match text.as_bytes().get(quote + 1) {
            Some(b'\'') => {
                value.push('\'');
                at = quote + 2;
            }
            Some(&byte) if !is_blank(byte) => {
                let reason = "a closing quote must be followed by a space; write a quote within quotes twice";
                return Err(SyntaxError { at: quote..quote + 1, reason });
            }
            _ => return Ok((value, quote + 1)),
        }
    }
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn skip_blanks(text: &str, from: usize) -> usize {
    find(text, from, |byte| !is_blank(byte))
}

fn find(text: &str, from: usize, matches: impl Fn(u8) -> bool) -> usize {
    text.as_bytes()[from..].iter().position(|&byte| matches(byte)).map_or(text.len(), |found| from + found)
}
