//! The TOML reader: the same keys in tables.

use super::ini::unknown_section;
use super::{Dialect, Entry, Group, Section, Written, connection_string};
use crate::diagnostic::{Diagnostic, Report};
use crate::source::{Place, Source};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

/// Reads the file.
pub(crate) fn read(source: &Arc<Source>, report: &mut Report) -> Written {
    let mut written = Written::new(Dialect::Toml, Place::new(source, 0..0));
    written.files.push(source.path().to_owned());
    let (document, errors) = DeTable::parse_recoverable(source.text());
    for error in &errors {
        let diagnostic = Diagnostic::error("syntax", error.message());
        let place = error.span().map(|span| Place::new(source, span));
        report.add(diagnostic.at_any(place.as_ref()));
    }
    if errors.is_empty() {
        Reader { source, report, written: &mut written }.document(document.get_ref());
    }
    written
}

type Key<'a> = Spanned<Cow<'a, str>>;
type Value<'a> = Spanned<DeValue<'a>>;

struct Reader<'a> {
    source: &'a Arc<Source>,
    report: &'a mut Report,
    written: &'a mut Written,
}

impl Reader<'_> {
    fn document(&mut self, document: &DeTable<'_>) {
        for (name, value) in sorted(document) {
            let Some(section) = Section::named(name.get_ref(), Dialect::Toml) else {
                self.report.add(unknown_section(name.get_ref(), Dialect::Toml).at(&self.place(name.span())));
                continue;
            };
            let DeValue::Table(table) = value.get_ref() else {
                self.error(format!("`{}` is a table", name.get_ref()), value.span());
                continue;
            };
            let added = if section == Section::General {
                let group = Group {
                    name: String::new(),
                    place: self.place(name.span()),
                    entries: self.entries(table),
                };
                self.written.push_group(section, group)
            } else {
                sorted(table).into_iter().try_for_each(|(name, value)| {
                    let group = self.group(name, value);
                    self.written.push_group(section, group)
                })
            };
            if let Err(too_many) = added {
                self.report.add(too_many.at(&self.place(name.span())));
                return;
            }
        }
    }

    fn group(&mut self, name: &Key<'_>, value: &Value<'_>) -> Group {
        let entries = match value.get_ref() {
            DeValue::Table(table) => self.entries(table),
            DeValue::String(text) => self.connection_string(text, value.span()),
            _ => {
                self.error("a table or a connection string is expected", value.span());
                Vec::new()
            }
        };
        Group { name: name.get_ref().to_string(), place: self.place(name.span()), entries }
    }

    fn connection_string(&mut self, text: &str, span: Range<usize>) -> Vec<Entry> {
        if text.contains('\0') {
            self.error("a zero byte is not allowed", span);
            return Vec::new();
        }
        // Offsets within the string are offsets within the file only if no escape changed them.
        let raw = self.source.text().get(span.start + 1..span.end.saturating_sub(1)).unwrap_or_default();
        let start = span.start + 1;
        let is_verbatim = raw == text;
        let within = |range: Range<usize>| {
            if is_verbatim { start + range.start..start + range.end } else { span.clone() }
        };
        connection_string::entries(text, |range| self.place(within(range))).unwrap_or_else(|error| {
            self.error(error.reason, within(error.at));
            Vec::new()
        })
    }

    fn entries(&mut self, table: &DeTable<'_>) -> Vec<Entry> {
        let mut entries = Vec::new();
        for (key, value) in sorted(table) {
            let text = match value.get_ref() {
                DeValue::Array(array) => {
                    array.iter().map(scalar).collect::<Option<Vec<_>>>().map(|elements| elements.join(","))
                }
                _ => scalar(value),
            };
            if text.as_ref().is_some_and(|text| text.contains('\0')) {
                self.error("a zero byte is not allowed", value.span());
                continue;
            }
            let Some(text) = text else {
                self.error("a string, a number, true, false or an array of those is expected", value.span());
                continue;
            };
            entries.push(Entry {
                key: key.get_ref().to_string(),
                value: text,
                is_array: matches!(value.get_ref(), DeValue::Array(_)),
                key_place: self.place(key.span()),
                place: self.place(value.span()),
            });
        }
        entries
    }

    fn place(&self, span: Range<usize>) -> Place {
        Place::new(self.source, span)
    }

    fn error(&mut self, message: impl Into<String>, span: Range<usize>) {
        let place = self.place(span);
        self.report.add(Diagnostic::error("syntax", message).at(&place));
    }
}

/// The pairs in the order of the file.
fn sorted<'a, 'i>(table: &'a DeTable<'i>) -> Vec<(&'a Key<'i>, &'a Value<'i>)> {
    let mut pairs: Vec<_> = table.iter().collect();
    pairs.sort_by_key(|(key, _)| key.span().start);
    pairs
}

fn scalar(value: &Value<'_>) -> Option<String> {
    match value.get_ref() {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => integer(number),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(on) => Some(on.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// Octal stays octal as an ini file writes it, for file modes.
fn integer(number: &DeInteger<'_>) -> Option<String> {
    match number.radix() {
        10 => Some(number.as_str().trim_start_matches('+').to_owned()),
        8 => Some(format!("0{}", number.as_str())),
        radix => i64::from_str_radix(number.as_str(), radix).ok().map(|number| number.to_string()),
    }
}

#[cfg(test)]
mod tests;
