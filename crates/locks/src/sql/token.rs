//! Text to tokens; together they are the text.

/// A stretch of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its text, quotes included.
    pub text: &'a str,
    /// Where it starts, in bytes.
    pub start: usize,
    /// False if its quote or comment is never closed.
    pub is_closed: bool,
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `-- …` or `/* … */`.
    Comment,
    /// A string in quotes of any form, with its prefix.
    Constant,
    /// A name in double quotes.
    Identifier,
    /// A number.
    Number,
    /// Any other character.
    Other,
    /// `;`
    Semicolon,
    /// White space.
    Space,
    /// A key word, or a name without quotes.
    Word,
}

/// The tokens of a text.
pub fn tokens(sql: &str) -> impl Iterator<Item = Token<'_>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = sql.get(start..)?;
        let first = rest.chars().next()?;
        let (kind, length) = next(rest, first);
        let text = &rest[..length.unwrap_or(rest.len())];
        let token = Token { kind, text, start, is_closed: length.is_some() };
        start += text.len();
        Some(token)
    })
}

/// Kind and length of the first token; no length if it is never closed.
fn next(rest: &str, first: char) -> (Kind, Option<usize>) {
    if first.is_ascii_whitespace() {
        return (Kind::Space, Some(until(rest, |c| !c.is_ascii_whitespace())));
    }
    if is_word_start(first) {
        return word(rest);
    }
    if first.is_ascii_digit() {
        return (Kind::Number, Some(until(rest, |c| !(c.is_ascii_alphanumeric() || c == '.' || c == '_'))));
    }
    match first {
        ';' => (Kind::Semicolon, Some(1)),
        '\'' => (Kind::Constant, quoted(rest, '\'', false)),
        '"' => (Kind::Identifier, quoted(rest, '"', false)),
        '-' if rest.starts_with("--") => (Kind::Comment, Some(until(rest, |c| c == '\n'))),
        '/' if rest.starts_with("/*") => (Kind::Comment, comment(rest)),
        '$' => match dollar_tag(rest) {
            Some(tag) => {
                let body = &rest[tag.len()..];
                (Kind::Constant, body.find(tag).map(|at| tag.len() + at + tag.len()))
            }
            None => (Kind::Other, Some(1)),
        },
        other => (Kind::Other, Some(other.len_utf8())),
    }
}

fn word(rest: &str) -> (Kind, Option<usize>) {
    let length = until(rest, |c| !(is_word_start(c) || c.is_ascii_digit() || c == '$'));
    let behind = &rest[length..];
    let offset = |found: Option<usize>, before: usize| found.map(|quoted| before + quoted);
    match &rest[..length] {
        "e" | "E" if behind.starts_with('\'') => (Kind::Constant, offset(quoted(behind, '\'', true), length)),
        "b" | "B" | "x" | "X" | "n" | "N" if behind.starts_with('\'') => {
            (Kind::Constant, offset(quoted(behind, '\'', false), length))
        }
        "u" | "U" if behind.starts_with("&'") => {
            (Kind::Constant, offset(quoted(&behind[1..], '\'', false), length + 1))
        }
        "u" | "U" if behind.starts_with("&\"") => {
            (Kind::Identifier, offset(quoted(&behind[1..], '"', false), length + 1))
        }
        _ => (Kind::Word, Some(length)),
    }
}

fn is_word_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

fn until(text: &str, is_end: impl FnMut(char) -> bool) -> usize {
    text.find(is_end).unwrap_or(text.len())
}

/// Length of the quoted stretch at the start, both quotes included; a doubled quote stands for itself.
fn quoted(text: &str, quote: char, has_escapes: bool) -> Option<usize> {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if has_escapes && character == '\\' {
            characters.next();
        } else if character == quote && characters.next_if(|(_, next)| *next == quote).is_none() {
            return Some(at + quote.len_utf8());
        }
    }
    None
}

/// Length of the comment at the start; they nest.
fn comment(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => {
                depth += 1;
                at += 2;
            }
            Some(b"*/") => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => at += 1,
        }
    }
    None
}

/// `$tag$` or `$$` at the start; a parameter such as `$1` is none.
fn dollar_tag(text: &str) -> Option<&str> {
    let body = text.get(1..)?;
    let end = body.find('$')?;
    let tag = &body[..end];
    let starts_well = tag.chars().next().is_none_or(is_word_start);
    (starts_well && tag.chars().all(|c| is_word_start(c) || c.is_ascii_digit())).then(|| &text[..end + 2])
}

#[cfg(test)]
mod tests;
