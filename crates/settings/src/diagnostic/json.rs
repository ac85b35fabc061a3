use super::{Diagnostic, Severity};
use serde_json::{Value, json};

/// The findings for tools: an array of objects with `severity`, `code`, `file`, `line`, `column`,
/// `message` and `help`; what there is none of is null.
#[must_use]
pub fn to_json(diagnostics: &[Diagnostic]) -> String {
    Value::Array(diagnostics.iter().map(object).collect()).to_string()
}

fn object(diagnostic: &Diagnostic) -> Value {
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let place = diagnostic.place.as_ref();
    json!({
        "severity": severity,
        "code": diagnostic.code,
        "file": place.map(|place| place.file().to_string_lossy()),
        "line": place.map(|place| place.line()),
        "column": place.map(|place| place.column()),
        "message": diagnostic.message,
        "help": diagnostic.help,
    })
}
