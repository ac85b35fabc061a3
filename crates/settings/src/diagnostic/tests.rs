use super::*;
use crate::source::Source;
use std::path::PathBuf;
use std::sync::Arc;

fn diagnostic(text: &str, part: &str) -> Diagnostic {
    let source = Arc::new(Source::new(PathBuf::from("pgbouncer.ini"), text.to_owned()));
    let start = text.find(part).unwrap();
    let place = Place::new(&source, start..start + part.len());
    Diagnostic::error("bad-value", "it is wrong").at(&place).help("write it right")
}

#[test]
fn text_shows_place_line_caret_and_help() {
    let text = to_text(&[diagnostic("[pgbouncer]\nport = many\n", "many")]);
    let expected = "\
error[bad-value]: it is wrong
 --> pgbouncer.ini:2:8
  |
2 | port = many
  |        ^^^^
  |
  = help: write it right
";
    assert_eq!(text.trim_end(), expected.trim_end());
}

#[test]
fn text_masks_a_password_on_the_line() {
    let text = to_text(&[diagnostic("a = prt=1 password='hush' x=2\n", "prt")]);
    assert!(text.contains("a = prt=1 password=****** x=2"), "{text}");
    assert!(!text.contains("hush"));
}

#[test]
fn very_long_line_is_named_by_its_place_alone() {
    let line = format!("x = {} many\n", "y".repeat(2000));
    let text = to_text(&[diagnostic(&line, "many")]);
    assert!(text.contains("pgbouncer.ini:1:2006"), "{text}");
    assert!(!text.contains("yyy"));
}

#[test]
fn json_holds_all_fields() {
    let json: serde_json::Value = serde_json::from_str(&to_json(&[
        diagnostic("[pgbouncer]\nport = many\n", "many"),
        Diagnostic::note("no-place", "so it is"),
    ]))
    .unwrap();
    let expected = serde_json::json!([
        {
            "severity": "error", "code": "bad-value", "file": "pgbouncer.ini", "line": 2, "column": 8,
            "message": "it is wrong", "help": "write it right",
        },
        {
            "severity": "note", "code": "no-place", "file": null, "line": null, "column": null,
            "message": "so it is", "help": null,
        },
    ]);
    assert_eq!(json, expected);
}

#[test]
fn report_is_bounded_and_says_how_much_it_left_out() {
    let mut report = Report::default();
    for _ in 0..MAX_DIAGNOSTICS + 10 {
        report.add(Diagnostic::error("x", "y"));
    }
    let errors = report.finish().unwrap_err();
    assert_eq!(errors.len(), MAX_DIAGNOSTICS);
    assert_eq!(errors.last().map(|error| error.message.as_str()), Some("11 more errors are left out"));
}

#[test]
fn cited_text_is_short_and_without_control_characters() {
    assert_eq!(quoted("a\u{1b}[31m\n"), "`a\\u{1b}[31m\\n`");
    assert!(quoted(&"x".repeat(1000)).chars().count() < 70);
}
