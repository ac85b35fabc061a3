//! The statements of a text, roughly, and those with which drivers take a session back to its start.

use super::Markers;

/// A longer text is no reset of a driver.
const MAX_RESET_BYTES: usize = 512;

/// How many times the length of a text is walked through at most to find where its statements begin.
const MAX_WALKS: usize = 4;

/// Statements that only take away what a session holds.
const RESETS: [(&str, Markers); 14] = [
    ("close all", Markers::NONE),
    ("deallocate all", Markers::DEALLOCATE),
    ("deallocate prepare all", Markers::DEALLOCATE),
    ("discard all", Markers(Markers::RESET_ALL.0 | Markers::DISCARD.0)),
    ("discard plans", Markers::DISCARD),
    ("discard sequences", Markers::DISCARD),
    ("discard temp", Markers::DISCARD),
    ("discard temporary", Markers::DISCARD),
    ("reset all", Markers::RESET_ALL),
    ("reset role", Markers::NONE),
    ("reset session authorization", Markers::NONE),
    ("select pg_advisory_unlock_all()", Markers::ADVISORY_UNLOCK),
    ("set session authorization default", Markers::NONE),
    ("unlisten *", Markers::NONE),
];

/// The marks of a text of which every statement is one of them, `RESET ALL` among them.
pub(super) fn only_resets(text: &[u8]) -> Option<Markers> {
    if text.len() > MAX_RESET_BYTES {
        return None;
    }
    let mut found = Markers::NONE;
    for statement in text.split(|&byte| byte == b';') {
        let words = statement.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let mut plain = words.fold(Vec::with_capacity(statement.len()), |mut plain, word| {
            if !plain.is_empty() {
                plain.push(b' ');
            }
            plain.extend_from_slice(word);
            plain
        });
        plain.make_ascii_lowercase();
        if plain.is_empty() {
            continue;
        }
        found |= RESETS.iter().find(|(text, _)| text.as_bytes() == plain).map(|&(_, marks)| marks)?;
    }
    found.has(Markers::RESET_ALL).then_some(found)
}

/// What stands at the start of the text and behind each semicolon, without spaces and comments before it. A semicolon
/// inside a string counts as one.
pub(super) fn statement_heads(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let behind = text.iter().enumerate().filter(|&(_, &byte)| byte == b';').map(|(at, _)| at + 1);
    // Comments that contain semicolons are walked through from each of them, but not for ever.
    let mut steps = MAX_WALKS * text.len();
    std::iter::once(0).chain(behind).map(move |at| {
        let rest = text.get(at..).unwrap_or_default().trim_ascii_start();
        let head = if steps > 0 { skip_blank(rest) } else { rest };
        steps = steps.saturating_sub(rest.len() - head.len());
        head
    })
}

/// Without spaces and comments at the start.
pub(super) fn skip_blank(text: &[u8]) -> &[u8] {
    let mut rest = text;
    loop {
        rest = rest.trim_ascii_start();
        if let Some(comment) = rest.strip_prefix(b"--") {
            let end = comment.iter().position(|&byte| byte == b'\n').unwrap_or(comment.len());
            rest = comment.get(end..).unwrap_or_default();
        } else if let Some(comment) = rest.strip_prefix(b"/*") {
            rest = behind_comment(comment);
        } else {
            return rest;
        }
    }
}

/// Comments of this kind may stand inside each other.
fn behind_comment(comment: &[u8]) -> &[u8] {
    let mut depth = 1;
    let mut at = 0;
    while depth > 0 {
        match comment.get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            Some(_) => at += 1,
            None => return &[],
        }
    }
    comment.get(at..).unwrap_or_default()
}
