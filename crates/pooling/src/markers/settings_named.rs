//! Which parameters a text sets by name.

use super::resets::{skip_blank, statement_heads};
use super::{Markers, find_word, starts_with};

/// Longest name of a parameter, in bytes: identifiers of PostgreSQL have up to 63.
pub const MAX_PARAMETER_NAME_BYTES: usize = 127;

/// How much of a text is looked at behind a `SET` in a block, or behind a call of `set_config` of which there are many: so
/// that the time for a text does not grow with its square.
const MAX_SET_BYTES: usize = 2 * MAX_PARAMETER_NAME_BYTES;

/// Calls of `set_config` in one text whose arguments may be of any length.
const MAX_LONG_CALLS: usize = 32;

/// A parameter that a text sets for the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// By this name, lower case.
    Parameter(String),
    /// By a name that does not stand in the text.
    Unknown,
}

/// True for what PostgreSQL takes as the name of a parameter: identifiers of letters, digits, `_` and `$`, with dots
/// between them.
#[must_use]
pub fn is_parameter_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let mut bytes = part.bytes();
        bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80)
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80)
    };
    name.len() <= MAX_PARAMETER_NAME_BYTES && name.split('.').all(is_part)
}

/// Tells of each parameter that the text sets for the session: by `SET` at the start of a statement, and by `set_config`.
pub fn parameters_named(text: &[u8], mut tell: impl FnMut(Named)) {
    for head in statement_heads(text) {
        if kind_of_set(head) == Markers::SET
            && let Some(name) = name_behind_set(head)
        {
            tell(Named::Parameter(name));
        }
    }
    for set in sets_in_block(text) {
        if let Some(name) = name_behind_set(set) {
            tell(Named::Parameter(name));
        }
    }
    // What a function does when it is called is not seen; its definition says nothing of this session.
    if starts_with(skip_blank(text), 0, b"create") {
        return;
    }
    const WORD: &[u8] = b"set_config";
    let mut from = 0;
    let mut calls = 0;
    while let Some(at) = find_word(text, WORD, from) {
        from = at + WORD.len();
        calls += 1;
        let text = as_far_as_is_read(text, from, calls);
        if is_local_call(text, from) {
            continue;
        }
        let name = arguments(text, from).and_then(|[name, _, _]| literal(name));
        tell(name.map_or(Named::Unknown, Named::Parameter));
    }
}

/// The text as far as the arguments of its call number `calls` are read.
pub(super) fn as_far_as_is_read(text: &[u8], from: usize, calls: usize) -> &[u8] {
    if calls <= MAX_LONG_CALLS { text } else { text.get(..from + MAX_SET_BYTES).unwrap_or(text) }
}

/// Each `SET` for the session in a `DO` block, and the one of an UPDATE, which looks the same: it has no command tag of
/// its own.
pub(super) fn sets_in_block(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let body = behind_word(skip_blank(text), b"do").unwrap_or_default();
    let mut from = 0;
    std::iter::from_fn(move || {
        while let Some(at) = find_word(body, b"set", from) {
            from = at + 1;
            let is_start = at == 0 || !(body[at - 1].is_ascii_alphanumeric() || body[at - 1] == b'_');
            let rest = body.get(at..body.len().min(at + MAX_SET_BYTES)).unwrap_or_default();
            if is_start && kind_of_set(rest) == Markers::SET {
                return Some(rest);
            }
        }
        None
    })
}

/// `SET`, `SET_LOCAL` or nothing, for the start of a statement.
pub(super) fn kind_of_set(head: &[u8]) -> Markers {
    let Some(rest) = behind_word(head, b"set") else { return Markers::NONE };
    let is = |word: &[u8]| behind_word(rest, word).is_some();
    if is(b"local") || is(b"transaction") || is(b"constraints") { Markers::SET_LOCAL } else { Markers::SET }
}

/// What follows a word, if it stands there and ends there.
fn behind_word<'a>(text: &'a [u8], word: &[u8]) -> Option<&'a [u8]> {
    let rest = starts_with(text, 0, word).then(|| text.get(word.len()..).unwrap_or_default())?;
    let ends = rest.first().is_none_or(|&byte| !(byte.is_ascii_alphanumeric() || byte == b'_'));
    ends.then(|| skip_blank(rest))
}

/// The name in `SET [SESSION] name …`; none for the forms that have grammar of their own.
fn name_behind_set(head: &[u8]) -> Option<String> {
    let rest = behind_word(head, b"set")?;
    let rest = behind_word(rest, b"session").unwrap_or(rest);
    let end = rest
        .iter()
        .position(|&byte| {
            !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | b'"') || byte >= 0x80)
        })
        .unwrap_or(rest.len());
    let name = std::str::from_utf8(rest.get(..end)?).ok()?.replace('"', "").to_ascii_lowercase();
    is_parameter_name(&name).then_some(name)
}

/// True for a call whose third argument says that it is for the transaction alone.
pub(super) fn is_local_call(text: &[u8], from: usize) -> bool {
    arguments(text, from).is_some_and(|[_, _, local]| {
        let is = |word: &[u8]| local.eq_ignore_ascii_case(word);
        is(b"true") || is(b"'t'") || is(b"'true'") || is(b"true::boolean") || is(b"true::bool")
    })
}

/// A string without anything that would need to be undone.
fn literal(argument: &[u8]) -> Option<String> {
    let inner = argument.strip_prefix(b"'")?;
    let end = inner.iter().position(|&byte| byte == b'\'')?;
    // A cast may follow.
    if !matches!(inner.get(end + 1..)?.trim_ascii_start(), b"" | [b':', b':', ..]) {
        return None;
    }
    let name = std::str::from_utf8(inner.get(..end)?).ok()?.to_ascii_lowercase();
    is_parameter_name(&name).then_some(name)
}

/// The three arguments in brackets that follow, with quotes and brackets inside them.
fn arguments(text: &[u8], from: usize) -> Option<[&[u8]; 3]> {
    let mut inner = text.get(from..)?;
    // The name of the function may stand in quotes.
    inner = inner.strip_prefix(b"\"").unwrap_or(inner);
    let inner = skip_blank(inner).strip_prefix(b"(")?;
    let mut found: [&[u8]; 3] = [b""; 3];
    let (mut count, mut start, mut depth, mut quoted) = (0, 0, 0_usize, false);
    for (at, &byte) in inner.iter().enumerate() {
        match byte {
            b'\'' => quoted = !quoted,
            _ if quoted => {}
            b'(' => depth += 1,
            b')' | b',' if depth == 0 => {
                *found.get_mut(count)? = inner.get(start..at)?.trim_ascii();
                count += 1;
                start = at + 1;
                if byte == b')' {
                    return (count == found.len()).then_some(found);
                }
            }
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}
