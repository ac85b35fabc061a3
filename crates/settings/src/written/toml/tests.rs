use super::*;
use std::path::PathBuf;

fn read_text(text: &str) -> Result<Written, Vec<(usize, usize, String)>> {
    let mut report = Report::default();
    let source = Arc::new(Source::new(PathBuf::from("pooler.toml"), text.to_owned()));
    let written = read(&source, &mut report);
    match report.finish() {
        Ok(_) => Ok(written),
        Err(errors) => Err(errors
            .into_iter()
            .map(|error| {
                let place = error.place.unwrap();
                (place.line(), place.column(), error.message)
            })
            .collect()),
    }
}

fn pairs(entries: &[Entry]) -> Vec<(&str, &str)> {
    entries.iter().map(|entry| (entry.key.as_str(), entry.value.as_str())).collect()
}

#[test]
fn every_kind_of_value_becomes_the_text_of_an_ini_file() {
    let text = r#"
[pooler]
a = "text"
b = 4_000
c = 0.5
d = true
e = ["x", "y"]
f = 0o777
g = 0xff
h = +7
"#;
    let written = read_text(text).unwrap();
    let expected = [
        ("a", "text"),
        ("b", "4000"),
        ("c", "0.5"),
        ("d", "true"),
        ("e", "x,y"),
        ("f", "0777"),
        ("g", "255"),
        ("h", "7"),
    ];
    assert_eq!(pairs(&written.general), expected);
    assert!(written.general[4].is_array);
}

#[test]
fn database_may_be_a_table_an_inline_table_or_a_connection_string() {
    let text = r#"
[databases]
b = { host = "h", port = 5433 }
c = "host=h port=5433"
[databases."a.b"]
host = "h"
port = 5433
"#;
    let written = read_text(text).unwrap();
    let names: Vec<_> = written.databases.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["b", "c", "a.b"]);
    for group in &written.databases {
        assert_eq!(pairs(&group.entries), [("host", "h"), ("port", "5433")], "{}", group.name);
    }
    let port = &written.databases[1].entries[1];
    assert_eq!((port.key_place.line(), port.key_place.column(), port.place.column()), (4, 13, 18));
}

#[test]
fn connection_string_with_escapes_is_placed_as_a_whole() {
    let written = read_text("[databases]\nc = \"host=\\u0068 port=1\"\n").unwrap();
    let place = &written.databases[0].entries[1].place;
    assert_eq!((place.line(), place.column()), (2, 5));
}

#[test]
fn broken_files_are_refused_in_their_place() {
    for (text, line, column, part) in [
        ("[pooler]\na = \n", 2, 5, ""),
        ("[pooler]\na = 1\na = 2\n", 3, 1, "duplicate key"),
        ("[pooler]\na = 2020-01-01\n", 2, 5, "is expected"),
        ("[pooler]\na = [[1]]\n", 2, 5, "is expected"),
        ("pooler = 1\n", 1, 10, "is a table"),
        ("[poler]\n", 1, 2, "no section `poler`"),
        ("[databases]\na = 1\n", 2, 5, "connection string"),
        ("[databases]\na = \"host\"\n", 2, 6, "list of key=value"),
        ("[databases]\na = \"host=h\\u0000\"\n", 2, 5, "zero byte"),
        ("[pooler]\nuser = \"h\\u0000\"\n", 2, 8, "zero byte"),
    ] {
        let errors = read_text(text).unwrap_err();
        assert_eq!((errors[0].0, errors[0].1), (line, column), "{text:?}: {errors:?}");
        assert!(errors[0].2.contains(part), "{text:?}: {errors:?}");
    }
}

#[test]
fn all_syntax_errors_are_reported_together() {
    let errors = read_text("[pooler]\na = @\nb = 1\nc = @\n").unwrap_err();
    let lines: Vec<_> = errors.iter().map(|error| error.0).collect();
    assert!(lines.contains(&2) && lines.contains(&4), "{errors:?}");
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    let text = format!("[pooler]\na = {}", "[".repeat(100_000));
    assert!(read_text(&text).is_err());
}
