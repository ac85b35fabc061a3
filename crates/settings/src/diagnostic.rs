//! What is wrong, or worth knowing, about what was written.

use crate::source::Place;

mod json;
mod text;

pub use json::to_json;
pub use text::to_text;

/// Most diagnostics of one load; the last of them says that there are more.
pub const MAX_DIAGNOSTICS: usize = 100;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is wrong; this is worth knowing.
    Note,
    /// It runs, but hardly as meant.
    Warning,
    /// It does not run.
    Error,
}

/// One finding.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Stable name of the kind of finding, for tools.
    pub code: &'static str,
    /// Where it was written; none for what was not written anywhere.
    pub place: Option<Place>,
    /// What is the matter. Never holds a secret.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    pub(crate) fn new(severity: Severity, code: &'static str, message: impl Into<String>) -> Self {
        Self { severity, code, place: None, message: message.into(), help: None }
    }

    pub(crate) fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    pub(crate) fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    pub(crate) fn note(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, code, message)
    }

    pub(crate) fn at(mut self, place: &Place) -> Self {
        self.place = Some(place.clone());
        self
    }

    pub(crate) fn at_any(self, place: Option<&Place>) -> Self {
        match place {
            Some(place) => self.at(place),
            None => self,
        }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// All findings of one load.
#[derive(Debug, Default)]
pub(crate) struct Report {
    errors: Vec<Diagnostic>,
    notes: Vec<Diagnostic>,
    errors_left_out: usize,
    notes_left_out: usize,
}

impl Report {
    pub(crate) fn add(&mut self, diagnostic: Diagnostic) {
        let (list, left_out) = if diagnostic.severity == Severity::Error {
            (&mut self.errors, &mut self.errors_left_out)
        } else {
            (&mut self.notes, &mut self.notes_left_out)
        };
        if list.len() + 1 < MAX_DIAGNOSTICS {
            list.push(diagnostic);
        } else {
            *left_out += 1;
        }
    }

    /// Whether further errors are only counted, so that they need no care.
    pub(crate) fn is_full(&self) -> bool {
        self.errors.len() + 1 >= MAX_DIAGNOSTICS
    }

    pub(crate) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// The notes, or the errors if there are any.
    pub(crate) fn finish(mut self) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        if self.errors_left_out > 0 {
            let message = format!("{} more errors are left out", self.errors_left_out);
            self.errors.push(Diagnostic::error("too-many", message));
        }
        if self.notes_left_out > 0 {
            let message = format!("{} more notes are left out", self.notes_left_out);
            self.notes.push(Diagnostic::note("too-many", message));
        }
        if self.errors.is_empty() { Ok(self.notes) } else { Err(self.errors) }
    }
}

/// Text from a file as part of a message: short, on one line, without control characters. Text that holds
/// a `password=`, where broken quoting swallowed one, is left out.
pub(crate) fn quoted(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    if text.contains('=') && text.to_ascii_lowercase().contains("password") {
        return "`…`".to_owned();
    }
    let mut shown: String = text.chars().take(MAX_CHARS).flat_map(char::escape_debug).collect();
    if text.chars().nth(MAX_CHARS).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

#[cfg(test)]
mod tests;
