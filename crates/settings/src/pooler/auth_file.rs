//! `userlist.txt`: `"user" "secret"` on each line.
//!
//! A quote within quotes is doubled, `;` starts a comment line, what follows the secret is passed over, and
//! the last line of a user counts, all as in PgBouncer. No diagnostic shows any of the text.

use super::model::{AuthType, Secret};
use crate::diagnostic::{Diagnostic, Report};
use crate::source::{Place, Source};
use crate::written::Entry;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Longest user name, in bytes, as in PgBouncer.
pub const MAX_USER_BYTES: usize = 127;
/// Longest secret, in bytes; tokens of cloud services are long.
pub const MAX_SECRET_BYTES: usize = 128 << 10;

/// The secrets by user.
pub(crate) fn read(source: &Arc<Source>, report: &mut Report) -> BTreeMap<String, Secret> {
    let mut secrets = BTreeMap::new();
    let text = source.text();
    let mut start = usize::from(text.starts_with('\u{feff}')) * '\u{feff}'.len_utf8();
    while start < text.len() {
        let end = text[start..].find('\n').map_or(text.len(), |length| start + length);
        match line(&text[start..end]) {
            Ok(None) => {}
            Ok(Some((user, secret))) => {
                if secrets.insert(user, Secret::classify(&secret)).is_some() {
                    let message = "this user has an earlier line; this one counts";
                    report.add(Diagnostic::note("duplicate", message).at(&hidden(source, start..start)));
                }
            }
            Err((offset, reason)) => {
                let place = hidden(source, start + offset..start + offset);
                report.add(Diagnostic::error("auth-file", reason).at(&place));
            }
        }
        start = end + 1;
    }
    secrets
}

/// Warns of secrets that the way of login cannot use.
pub(crate) fn check_for(
    auth_type: AuthType,
    secrets: &BTreeMap<String, Secret>,
    entry: &Entry,
    report: &mut Report,
) {
    let md5 = secrets.values().filter(|secret| matches!(secret, Secret::Md5(_))).count();
    if auth_type == AuthType::ScramSha256 && md5 > 0 {
        let message =
            format!("{md5} users have an md5 secret; with `auth_type = scram-sha-256` they cannot log in");
        report.add(Diagnostic::warning("nobody-can-log-in", message).at(&entry.place));
    }
}

type Line = Option<(String, String)>;
type BadLine = (usize, &'static str);

fn line(line: &str) -> Result<Line, BadLine> {
    let start = line.len() - line.trim_start().len();
    if line[start..].is_empty() || line[start..].starts_with(';') {
        return Ok(None);
    }
    let (user, after_user) = quoted(line, start, "a line starts with a user in double quotes")?;
    if user.is_empty() {
        return Err((start, "the user's name is empty"));
    }
    if user.len() > MAX_USER_BYTES {
        return Err((start, "the user's name is longer than 127 bytes"));
    }
    let blanks = line[after_user..].len() - line[after_user..].trim_start().len();
    let at = after_user + blanks;
    let (secret, _) = quoted(line, at, "the user is followed by a secret in double quotes")?;
    if secret.len() > MAX_SECRET_BYTES {
        return Err((at, "the secret is longer than 128 kB"));
    }
    Ok(Some((user, secret)))
}

/// The text in quotes at `start`, and where it ends.
fn quoted(line: &str, start: usize, missing: &'static str) -> Result<(String, usize), BadLine> {
    if line.as_bytes().get(start) != Some(&b'"') {
        return Err((start, missing));
    }
    let mut text = String::new();
    let mut at = start + 1;
    while let Some(length) = line[at..].find('"') {
        text.push_str(&line[at..at + length]);
        at += length + 1;
        if line.as_bytes().get(at) != Some(&b'"') {
            return Ok((text, at));
        }
        text.push('"');
        at += 1;
    }
    Err((start, "the quote that opens here is never closed"))
}

/// A place that never shows its line.
fn hidden(source: &Arc<Source>, range: Range<usize>) -> Place {
    Place::new(source, range).without_excerpt()
}

#[cfg(test)]
mod tests;
