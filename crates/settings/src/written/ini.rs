//! The lexer of `pgbouncer.ini`.
//!
//! As PgBouncer reads it: a comment stands on a line of its own, a value runs to the end of its line and
//! has no quotes, `%include` reads a file as if its text stood here, its name relative to the working folder.

use super::{
    Dialect, Entry, Group, MAX_FILES, MAX_INCLUDE_DEPTH, MAX_LINE_BYTES, Section, TooMany, Written,
    connection_string,
};
use crate::diagnostic::{Diagnostic, Report, quoted};
use crate::source::{MAX_FILE_BYTES, Place, Source, Sources};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Reads the file and all that it includes.
pub(crate) fn read(source: &Arc<Source>, sources: &dyn Sources, report: &mut Report) -> Written {
    let written = Written::new(Dialect::Ini, Place::new(source, 0..0));
    let mut lexer = Lexer {
        sources,
        report,
        written,
        section: Position::BeforeAny,
        has_general: false,
        bytes: 0,
        is_over: false,
    };
    lexer.file(source, 0);
    lexer.written
}

/// Which section the next line belongs to. It runs on into an included file and back out of it.
#[derive(Clone, Copy)]
enum Position {
    BeforeAny,
    In(Section),
    /// The header was refused; its lines are passed over.
    InUnknown,
}

struct Lexer<'a> {
    sources: &'a dyn Sources,
    report: &'a mut Report,
    written: Written,
    section: Position,
    has_general: bool,
    /// Bytes of all files so far.
    bytes: usize,
    /// There is too much; nothing more is read.
    is_over: bool,
}

impl Lexer<'_> {
    fn file(&mut self, source: &Arc<Source>, depth: usize) {
        self.written.files.push(source.path().to_owned());
        let text = source.text();
        let mut start = usize::from(text.starts_with('\u{feff}')) * '\u{feff}'.len_utf8();
        self.bytes += text.len();
        while start < text.len() && !self.is_over {
            let end = text[start..].find('\n').map_or(text.len(), |length| start + length);
            if end - start > MAX_LINE_BYTES {
                let message = format!("the line is longer than {} kB", MAX_LINE_BYTES >> 10);
                self.error("syntax", message, &Place::new(source, start..start));
            } else {
                self.line(source, start..end, depth);
            }
            start = end + 1;
        }
    }

    fn line(&mut self, source: &Arc<Source>, range: Range<usize>, depth: usize) {
        let mut line = trimmed(source.text(), range);
        loop {
            match source.text()[line.clone()].as_bytes().first() {
                None | Some(b';' | b'#') => {}
                Some(b'%') => self.directive(source, line, depth),
                Some(b'[') => {
                    // PgBouncer reads on behind the bracket.
                    let behind = self.header(source, line.clone());
                    line = trimmed(source.text(), behind..line.end);
                    continue;
                }
                Some(_) => self.key_and_value(source, line),
            }
            return;
        }
    }

    fn directive(&mut self, source: &Arc<Source>, line: Range<usize>, depth: usize) {
        let text = &source.text()[line.clone()];
        let place = Place::new(source, line);
        let name = text.strip_prefix("%include").filter(|rest| rest.starts_with([' ', '\t'])).map(str::trim);
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return self.error("syntax", "the only directive is `%include FILE`", &place);
        };
        if depth >= MAX_INCLUDE_DEPTH {
            return self.error(
                "include",
                format!("`%include` nests deeper than {MAX_INCLUDE_DEPTH} files"),
                &place,
            );
        }
        if self.written.files.len() >= MAX_FILES {
            return self.error("include", format!("there are more than {MAX_FILES} files"), &place);
        }
        let Some(included) = open(Path::new(name), self.sources, Some(&place), self.report) else { return };
        if self.bytes + included.text().len() > MAX_FILE_BYTES {
            let message = format!("the files together are larger than {} MB", MAX_FILE_BYTES >> 20);
            return self.error("include", message, &place);
        }
        self.file(&included, depth + 1);
    }

    /// Takes a section's name; tells where the line goes on.
    fn header(&mut self, source: &Arc<Source>, line: Range<usize>) -> usize {
        let text = &source.text()[line.clone()];
        let Some(length) = text.find(']') else {
            self.section = Position::InUnknown;
            let end = line.end;
            self.error("syntax", "a section's name ends with `]`", &Place::new(source, line));
            return end;
        };
        let name = &text[1..length];
        let behind = line.start + length + 1;
        let Some(section) = Section::named(name, Dialect::Ini) else {
            let place = Place::new(source, line.start + 1..behind - 1);
            self.report.add(unknown_section(name, Dialect::Ini).at(&place));
            self.section = Position::InUnknown;
            return behind;
        };
        if section == Section::General && !self.has_general {
            self.has_general = true;
            self.written.general_place = Place::new(source, line.start..behind);
        }
        self.section = Position::In(section);
        behind
    }

    fn key_and_value(&mut self, source: &Arc<Source>, line: Range<usize>) {
        let text = &source.text()[line.clone()];
        let (key, key_length) = match key(text) {
            Ok(key) => key,
            Err(reason) => {
                return self.error("syntax", reason, &Place::new(source, line.start..line.start + 1));
            }
        };
        let rest = text[key_length..].trim_start_matches([' ', '\t']);
        if !rest.starts_with('=') {
            let place = Place::new(source, line.start..line.start + key_length.max(1));
            return self.error(
                "syntax",
                "a line is `key = value`, `[section]`, `%include FILE` or a comment",
                &place,
            );
        }
        let key_place = Place::new(source, line.start..line.start + key_length);
        let value = trimmed(source.text(), line.end - rest.len() + 1..line.end);
        match self.section {
            Position::BeforeAny => {
                self.error("syntax", "there is no section above, such as `[pgbouncer]`", &key_place);
            }
            Position::InUnknown => {}
            Position::In(Section::General) => {
                let place = Place::new(source, value.clone());
                let value = source.text()[value].to_owned();
                let entry = Entry { key, value, is_array: false, key_place: key_place.clone(), place };
                let pushed = self.written.push_general(entry);
                self.count(pushed, &key_place);
            }
            Position::In(section) => {
                let group = group(source, key, key_place.clone(), value, self.report);
                let pushed = self.written.push_group(section, group);
                self.count(pushed, &key_place);
            }
        }
    }

    /// Ends the reading when there is too much.
    fn count(&mut self, pushed: Result<(), TooMany>, place: &Place) {
        if let Err(too_many) = pushed {
            self.report.add(too_many.at(place));
            self.is_over = true;
        }
    }

    fn error(&mut self, code: &'static str, message: impl Into<String>, place: &Place) {
        self.report.add(Diagnostic::error(code, message).at(place));
    }
}

/// Opens a file as text; what hinders that is reported at `place`.
pub(crate) fn open(
    path: &Path,
    sources: &dyn Sources,
    place: Option<&Place>,
    report: &mut Report,
) -> Option<Arc<Source>> {
    let bytes = match sources.read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            let message = format!("the file {} cannot be read: {error}", quoted(&path.to_string_lossy()));
            report.add(Diagnostic::error("unreadable", message).at_any(place));
            return None;
        }
    };
    match String::from_utf8(bytes) {
        Ok(text) => match text.find('\0') {
            None => Some(Arc::new(Source::new(path.to_owned(), text))),
            Some(offset) => {
                let source = Arc::new(Source::new(path.to_owned(), text));
                let diagnostic = Diagnostic::error("syntax", "a zero byte is not allowed");
                report.add(diagnostic.at(&Place::new(&source, offset..offset)));
                None
            }
        },
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned();
            let source = Arc::new(Source::new(path.to_owned(), text));
            let diagnostic = Diagnostic::error("syntax", "the file is not UTF-8 from here on");
            report.add(diagnostic.at(&Place::new(&source, valid..valid)));
            None
        }
    }
}

pub(crate) fn unknown_section(name: &str, dialect: Dialect) -> Diagnostic {
    let known = Section::NAMES.into_iter().filter(|name| Section::named(name, dialect).is_some());
    let list = known.clone().map(|name| format!("[{name}]")).collect::<Vec<_>>().join(", ");
    let diagnostic = Diagnostic::error("unknown-section", format!("there is no section {}", quoted(name)));
    match crate::pooler::nearest(name, known) {
        Some(nearest) => diagnostic.help(format!("did you mean `[{nearest}]`?")),
        None => diagnostic.help(format!("sections are {list}")),
    }
}

fn group(
    source: &Arc<Source>,
    name: String,
    place: Place,
    value: Range<usize>,
    report: &mut Report,
) -> Group {
    let text = &source.text()[value.clone()];
    let within = |range: Range<usize>| Place::new(source, value.start + range.start..value.start + range.end);
    let entries = connection_string::entries(text, within).unwrap_or_else(|error| {
        report.add(Diagnostic::error("syntax", error.reason).at(&within(error.at)));
        Vec::new()
    });
    Group { name, place, entries }
}

/// A key at the start of `text`, and how many bytes it takes. Names with other characters than letters,
/// digits, `_ . - *` stand in double quotes (`""` is one) or single ones.
fn key(text: &str) -> Result<(String, usize), &'static str> {
    if let Some(quote @ ('"' | '\'')) = text.chars().next() {
        let mut key = String::new();
        let mut characters = text.char_indices().skip(1).peekable();
        while let Some((offset, character)) = characters.next() {
            if character != quote {
                key.push(character);
            } else if quote == '"' && characters.next_if(|&(_, next)| next == quote).is_some() {
                key.push(quote);
            } else if key.is_empty() {
                return Err("a name must not be empty");
            } else {
                return Ok((key, offset + 1));
            }
        }
        return Err("the quote that opens here is never closed");
    }
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "_.-*".contains(character);
    let length = text.find(|character| !is_plain(character)).unwrap_or(text.len());
    if length == 0 {
        return Err("a line is `key = value`, `[section]`, `%include FILE` or a comment");
    }
    Ok((text[..length].to_owned(), length))
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let is_space = |character: char| character.is_ascii_whitespace() || character == '\u{b}';
    let inner = &text[range.clone()];
    let start = range.start + (inner.len() - inner.trim_start_matches(is_space).len());
    let end = range.end - (inner.len() - inner.trim_end_matches(is_space).len());
    start..end.max(start)
}

#[cfg(test)]
mod tests;
