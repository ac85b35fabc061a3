use super::*;
use crate::source::Memory;

const MAIN: &str = "main.ini";

fn read_files(sources: &Memory) -> Result<Written, Vec<(String, usize, usize, String)>> {
    let mut report = Report::default();
    let source = open(Path::new(MAIN), sources, None, &mut report);
    let written = source.map(|source| read(&source, sources, &mut report));
    match report.finish() {
        Ok(_) => Ok(written.unwrap()),
        Err(errors) => Err(errors
            .into_iter()
            .map(|error| match error.place {
                Some(place) => {
                    let file = place.file().to_string_lossy().into_owned();
                    (file, place.line(), place.column(), error.message)
                }
                None => (String::new(), 0, 0, error.message),
            })
            .collect()),
    }
}

fn read_text(text: &str) -> Result<Written, Vec<(String, usize, usize, String)>> {
    read_files(&Memory::new().with(MAIN, text))
}

fn general(written: &Written) -> Vec<(&str, &str)> {
    written.general.iter().map(|entry| (entry.key.as_str(), entry.value.as_str())).collect()
}

fn pairs(group: &Group) -> Vec<(&str, &str)> {
    group.entries.iter().map(|entry| (entry.key.as_str(), entry.value.as_str())).collect()
}

fn one_error(text: &str) -> (usize, usize, String) {
    let errors = read_text(text).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:?}");
    (errors[0].1, errors[0].2, errors[0].3.clone())
}

#[test]
fn values_run_to_the_end_of_their_line() {
    let text = "; comment\n# comment\n\n [pgbouncer] \r\n  a=1\r\nb =  two words ; not a comment \nc =\n";
    let written = read_text(text).unwrap();
    assert_eq!(general(&written), [("a", "1"), ("b", "two words ; not a comment"), ("c", "")]);
}

#[test]
fn each_value_knows_its_place() {
    let written = read_text("[databases]\ndb = host=h  port = 5433\n").unwrap();
    let group = &written.databases[0];
    assert_eq!((group.place.line(), group.place.column()), (2, 1));
    let places: Vec<_> = group
        .entries
        .iter()
        .map(|entry| (entry.key_place.column(), entry.place.column(), entry.place.line()))
        .collect();
    assert_eq!(places, [(6, 11, 2), (14, 21, 2)]);
}

#[test]
fn connection_strings_are_quoted_as_in_pgbouncer() {
    let text = "[databases]\ndb = dbname='with space' password='it''s' user=a'b\n";
    let written = read_text(text).unwrap();
    assert_eq!(
        pairs(&written.databases[0]),
        [("dbname", "with space"), ("password", "it's"), ("user", "a'b")]
    );
}

#[test]
fn names_with_other_characters_stand_in_quotes() {
    let text = "[databases]\n\"My.Db\" = host=a\n\"say \"\"hi\"\"\" = host=b\n'x y' = host=c\n* = host=d\nplain_1.2-3 =\n";
    let written = read_text(text).unwrap();
    let names: Vec<_> = written.databases.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["My.Db", "say \"hi\"", "x y", "*", "plain_1.2-3"]);
}

#[test]
fn section_may_be_followed_by_a_setting_on_its_line() {
    let written = read_text("[pgbouncer] a = 1\n[users] joe = pool_size=3\n").unwrap();
    assert_eq!(general(&written), [("a", "1")]);
    assert_eq!(pairs(&written.users[0]), [("pool_size", "3")]);
}

#[test]
fn mark_at_the_start_of_the_file_is_passed_over() {
    let written = read_text("\u{feff}[pgbouncer]\na = 1\n").unwrap();
    assert_eq!(general(&written), [("a", "1")]);
}

#[test]
fn include_reads_on_in_the_section_and_leaves_its_own_open() {
    let sources = Memory::new()
        .with(MAIN, "[pgbouncer]\n%include a.ini\nc = 3\n%include\tsub/b.ini  \nname = pool_size=4\n")
        .with("a.ini", "b = 2")
        .with("sub/b.ini", "[users]\n");
    let written = read_files(&sources).unwrap();
    assert_eq!(general(&written), [("b", "2"), ("c", "3")]);
    assert_eq!(written.general[0].place.file(), Path::new("a.ini"));
    assert_eq!(written.users[0].name, "name");
    assert_eq!(
        written.files.iter().map(|file| file.to_str().unwrap()).collect::<Vec<_>>(),
        [MAIN, "a.ini", "sub/b.ini"]
    );
}

#[test]
fn include_ends_at_its_greatest_depth() {
    let chain = |length: usize| {
        (1..=length).fold(Memory::new().with(MAIN, "[pgbouncer]\n%include 1"), |memory, at| {
            let text = if at < length { format!("%include {}", at + 1) } else { "a = 1".to_owned() };
            memory.with(at.to_string(), text)
        })
    };
    assert_eq!(general(&read_files(&chain(MAX_INCLUDE_DEPTH)).unwrap()), [("a", "1")]);
    let errors = read_files(&chain(MAX_INCLUDE_DEPTH + 1)).unwrap_err();
    assert_eq!((errors[0].0.as_str(), errors[0].1, errors[0].2), ("10", 1, 1));
    assert!(errors[0].3.contains("deeper than 10"), "{}", errors[0].3);
}

#[test]
fn files_that_include_each_other_twice_end_at_the_most_files() {
    let errors = read_files(&Memory::new().with(MAIN, "%include main.ini\n%include main.ini\n")).unwrap_err();
    assert!(errors.iter().any(|error| error.3.contains("deeper than 10")));
    assert!(errors.len() <= crate::diagnostic::MAX_DIAGNOSTICS);
}

#[test]
fn missing_include_is_named_where_it_is_asked_for() {
    let (line, column, message) = one_error("[pgbouncer]\n  %include gone.ini\n");
    assert_eq!((line, column), (2, 3));
    assert!(message.contains("`gone.ini`"), "{message}");
}

#[test]
fn broken_lines_are_refused_in_their_place() {
    for (text, line, column, part) in [
        ("[pgbouncer]\nabc\n", 2, 1, "`key = value`"),
        ("[pgbouncer]\n  abc def = 1\n", 2, 3, "`key = value`"),
        ("[pgbouncer]\n= 1\n", 2, 1, "`key = value`"),
        ("[pgbouncer\na = 1\n", 1, 1, "ends with `]`"),
        ("a = 1\n", 1, 1, "no section above"),
        ("%reload x\n", 1, 1, "`%include FILE`"),
        ("%include\n", 1, 1, "`%include FILE`"),
        ("[databases]\n\"ab = host=x\n", 2, 1, "never closed"),
        ("[databases]\n\"\" = host=x\n", 2, 1, "must not be empty"),
        ("[databases]\ndb = host=h port\n", 2, 13, "list of key=value"),
        ("[databases]\ndb = host=h =1\n", 2, 13, "no key before"),
        ("[databases]\ndb = host=h dbname='x\n", 2, 20, "never closed"),
        ("[databases]\ndb = dbname='x'y\n", 2, 15, "followed by a space"),
        ("[databases]\ndb = host=\n", 2, 6, "must not be empty"),
        ("[pgbuncer]\na = 1\n", 1, 2, "no section `pgbuncer`"),
        ("[pooler]\na = 1\n", 1, 2, "no section `pooler`"),
    ] {
        let (at_line, at_column, message) = one_error(text);
        assert_eq!((at_line, at_column), (line, column), "{text:?}: {message}");
        assert!(message.contains(part), "{text:?}: {message}");
    }
}

#[test]
fn columns_count_characters() {
    let (line, column, _) = one_error("[databases]\ndb = dbname='äöü' host\n");
    assert_eq!((line, column), (2, 19));
}

#[test]
fn bytes_that_are_no_text_are_refused_in_their_place() {
    let errors = read_files(&Memory::new().with(MAIN, b"[pgbouncer]\na = \xff\n".to_vec())).unwrap_err();
    assert_eq!((errors[0].1, errors[0].2), (2, 5));
    let (line, column, message) = one_error("[pgbouncer]\na = 1\0\n");
    assert_eq!((line, column), (2, 6));
    assert!(message.contains("zero byte"));
}

#[test]
fn longest_line_is_read_and_a_longer_one_refused() {
    let line = |length: usize| format!("[pgbouncer]\na = {}\n", "x".repeat(length - 4));
    assert_eq!(read_text(&line(MAX_LINE_BYTES)).unwrap().general[0].value.len(), MAX_LINE_BYTES - 4);
    let (at_line, at_column, message) = one_error(&line(MAX_LINE_BYTES + 1));
    assert_eq!((at_line, at_column), (2, 1));
    assert!(message.contains("longer than 128 kB"), "{message}");
}

#[test]
fn many_headers_on_one_line_need_no_deep_stack() {
    let text = "[users]".repeat(MAX_LINE_BYTES / 7);
    assert!(read_text(&text).is_ok());
}

#[test]
fn more_values_than_the_bound_are_refused_once() {
    let text = format!("[pgbouncer]\n{}", "a=1\n".repeat(super::super::MAX_ENTRIES + 10));
    let (line, _, message) = one_error(&text);
    assert_eq!(line, super::super::MAX_ENTRIES + 2);
    assert!(message.contains("more than 200000 values"), "{message}");
}

#[test]
fn files_together_stay_below_the_bound() {
    let half = format!("[pgbouncer]\n{}", "#\n".repeat(MAX_FILE_BYTES / 4));
    let sources = Memory::new().with(MAIN, "%include half\n%include half\n").with("half", half);
    let errors = read_files(&sources).unwrap_err();
    assert_eq!((errors.len(), errors[0].1), (1, 2));
    assert!(errors[0].3.contains("together are larger than 16 MB"), "{}", errors[0].3);
}
