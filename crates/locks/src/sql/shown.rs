//! What of a statement may be shown: what it does, and not with which values.

use super::token::{Kind, tokens};

/// Longest text that is shown.
pub const MAX_SHOWN_CHARACTERS: usize = 120;

/// A statement in one line: each constant is `?`, comments are left out, and what is too long is cut.
#[must_use]
pub fn shown(statement: &str) -> String {
    let mut out = String::new();
    let mut characters = 0;
    for token in tokens(statement) {
        let text = match token.kind {
            Kind::Comment | Kind::Space => " ",
            Kind::Constant | Kind::Number => "?",
            _ => token.text,
        };
        if text == " " && (out.is_empty() || out.ends_with(' ')) {
            continue;
        }
        for character in text.chars() {
            if characters >= MAX_SHOWN_CHARACTERS {
                out.push('…');
                return out;
            }
            out.push(if character.is_control() { ' ' } else { character });
            characters += 1;
        }
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests;
