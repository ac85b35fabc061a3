//! A text to statements.

use super::token::{Kind, Token, tokens};

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// Its text, without the semicolon and without what stands before its first word.
    pub text: &'a str,
    /// The line that it starts in; the first is 1.
    pub line: usize,
    /// Its words outside of quotes and comments, in upper case, the first [`MAX_WORDS`].
    pub words: Vec<String>,
}

/// Words of a statement that are kept: enough to tell what it is.
pub const MAX_WORDS: usize = 32;

/// A text that has no statements to be sent one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// A quote or a comment is open at the end.
    #[error("line {line}: the quote or comment that starts here is never closed")]
    Unclosed {
        /// Where it starts.
        line: usize,
    },
    /// A command of psql's.
    #[error("line {line}: `\\` starts a command of psql, which is not SQL; take it out")]
    PsqlCommand {
        /// Where.
        line: usize,
    },
}

/// The statements of a text, empty ones left out. A semicolon in parentheses, in quotes, or in the `BEGIN ATOMIC … END`
/// of a function ends none.
///
/// # Errors
/// [`SplitError`].
pub fn split(sql: &str) -> Result<Vec<Statement<'_>>, SplitError> {
    let line_of = |at: usize| sql[..at].matches('\n').count() + 1;
    let mut statements = Vec::new();
    let mut open = Open::default();
    for token in tokens(sql) {
        if !token.is_closed {
            return Err(SplitError::Unclosed { line: line_of(token.start) });
        }
        match token.kind {
            Kind::Comment | Kind::Space => {}
            Kind::Semicolon if open.is_at_top() => {
                statements.extend(std::mem::take(&mut open).end(sql, token.start, line_of));
            }
            Kind::Other if token.text == "\\" => {
                return Err(SplitError::PsqlCommand { line: line_of(token.start) });
            }
            _ => open.take(token),
        }
    }
    statements.extend(open.end(sql, sql.len(), line_of));
    Ok(statements)
}

/// The statement that is being read.
#[derive(Default)]
struct Open {
    start: Option<usize>,
    end: usize,
    words: Vec<String>,
    parentheses: usize,
    /// Blocks of a function's body that are open.
    blocks: usize,
}

impl Open {
    fn is_at_top(&self) -> bool {
        self.parentheses == 0 && self.blocks == 0
    }

    fn take(&mut self, token: Token<'_>) {
        self.start.get_or_insert(token.start);
        self.end = token.start + token.text.len();
        match (token.kind, token.text) {
            (Kind::Other, "(") => self.parentheses += 1,
            (Kind::Other, ")") => self.parentheses = self.parentheses.saturating_sub(1),
            (Kind::Word, word) => self.take_word(word.to_ascii_uppercase()),
            _ => {}
        }
    }

    fn take_word(&mut self, word: String) {
        match word.as_str() {
            "BEGIN" if self.defines_routine() => self.blocks += 1,
            "CASE" if self.blocks > 0 => self.blocks += 1,
            "END" => self.blocks = self.blocks.saturating_sub(1),
            _ => {}
        }
        if self.words.len() < MAX_WORDS {
            self.words.push(word);
        }
    }

    fn defines_routine(&self) -> bool {
        let words: Vec<&str> = self.words.iter().take(4).map(String::as_str).collect();
        matches!(
            words.as_slice(),
            ["CREATE", "FUNCTION" | "PROCEDURE", ..]
                | ["CREATE", "OR", "REPLACE", "FUNCTION" | "PROCEDURE", ..]
        )
    }

    fn end(self, sql: &str, end: usize, line_of: impl Fn(usize) -> usize) -> Option<Statement<'_>> {
        let start = self.start?;
        let text = &sql[start..self.end.min(end)];
        Some(Statement { text, line: line_of(start), words: self.words })
    }
}

#[cfg(test)]
mod tests;
