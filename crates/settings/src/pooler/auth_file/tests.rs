use super::*;
use crate::diagnostic::{Diagnostic, to_text};
use std::path::PathBuf;

type Secrets = BTreeMap<String, Secret>;

fn read_text(text: &str) -> Result<(Secrets, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut report = Report::default();
    let source = Arc::new(Source::new(PathBuf::from("userlist.txt"), text.to_owned()));
    let secrets = read(&source, &mut report);
    report.finish().map(|notes| (secrets, notes))
}

#[test]
fn users_and_secrets_are_read_with_their_quotes() {
    let text = "; comment\n\n\"joe\" \"pass\"\n  \"a \"\"b\"\"\"\t\"c\"\"d\" ignored\r\n\"none\" \"\"\n";
    let (secrets, notes) = read_text(text).unwrap();
    assert!(notes.is_empty());
    assert_eq!(secrets.len(), 3);
    assert_eq!(secrets["joe"], Secret::Plain("pass".into()));
    assert_eq!(secrets["a \"b\""], Secret::Plain("c\"d".into()));
    assert_eq!(secrets["none"], Secret::Plain(String::new()));
}

#[test]
fn md5_and_scram_are_told_by_their_form() {
    let verifier = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
    let text =
        format!("\"m\" \"md5cbdbf5d5d5a4d1bbd4dc8f3eaf6d1a11\"\n\"s\" \"{verifier}\"\n\"p\" \"md5nothex\"\n");
    let (secrets, _) = read_text(&text).unwrap();
    assert!(matches!(secrets["m"], Secret::Md5(_)));
    assert_eq!(secrets["s"], Secret::ScramVerifier(verifier.into()));
    assert_eq!(secrets["p"], Secret::Plain("md5nothex".into()));
}

#[test]
fn last_line_of_a_user_counts_and_a_note_says_so() {
    let (secrets, notes) = read_text("\"joe\" \"one\"\n\"joe\" \"two\"\n").unwrap();
    assert_eq!(secrets["joe"], Secret::Plain("two".into()));
    assert_eq!((notes.len(), notes[0].place.as_ref().map(Place::line)), (1, Some(2)));
}

#[test]
fn long_secrets_are_read_up_to_their_bound() {
    let text = |length: usize| format!("\"joe\" \"{}\"\n", "x".repeat(length));
    for length in [65_536, MAX_SECRET_BYTES] {
        assert_eq!(read_text(&text(length)).unwrap().0["joe"], Secret::Plain("x".repeat(length)));
    }
    let errors = read_text(&text(MAX_SECRET_BYTES + 1)).unwrap_err();
    assert!(errors[0].message.contains("longer than 128 kB"));
    assert!(read_text(&format!("\"{}\" \"x\"\n", "u".repeat(MAX_USER_BYTES))).is_ok());
    assert!(read_text(&format!("\"{}\" \"x\"\n", "u".repeat(MAX_USER_BYTES + 1))).is_err());
}

#[test]
fn broken_lines_are_refused_in_their_place_without_their_text() {
    for (text, line, column) in [
        ("\"a\" \"x\"\njoe hush\n", 2, 1),
        ("  joe hush\n", 1, 3),
        ("\"joe\" hush\n", 1, 7),
        ("\"joe\" \"hush\n", 1, 7),
        ("\"joe hush\n", 1, 1),
        ("\"joe\"\n", 1, 6),
        ("\"\" \"hush\"\n", 1, 1),
    ] {
        let errors = read_text(text).unwrap_err();
        let place = errors[0].place.as_ref().unwrap();
        assert_eq!((errors.len(), place.line(), place.column()), (1, line, column), "{text:?}");
        let shown = to_text(&errors);
        assert!(!shown.contains("hush") && !shown.contains("joe"), "{shown}");
    }
}

#[test]
fn every_broken_line_is_reported() {
    assert_eq!(read_text("x\n\"a\" \"b\"\ny\n").unwrap_err().len(), 2);
}
