use super::*;
use proptest::prelude::*;

fn texts(sql: &str) -> Vec<&str> {
    split(sql).unwrap().into_iter().map(|statement| statement.text).collect()
}

#[test]
fn a_semicolon_ends_a_statement_only_at_the_top() {
    assert_eq!(texts("select 1; select ';' ;; -- no; more\n"), ["select 1", "select ';'"]);
    let rule = "create rule r as on insert to t do (select 1; select 2)";
    assert_eq!(texts(&format!("{rule}; select 3")), [rule, "select 3"]);
    let function = "create or replace function f() returns int language sql \
        begin atomic select case when true then 1 end; select 2; end";
    assert_eq!(texts(&format!("{function}; select 3")), [function, "select 3"]);
    let block = "do $$ begin; end; $$";
    assert_eq!(texts(&format!("{block};begin;commit")), [block, "begin", "commit"]);
}

#[test]
fn a_statement_knows_its_line_and_its_words() {
    let statements =
        split("-- first\nselect 1;\n\n  create /* x */ index concurrently \"i\" on t(a)").unwrap();
    assert_eq!((statements[0].line, statements[1].line), (2, 4));
    assert_eq!(statements[1].words, ["CREATE", "INDEX", "CONCURRENTLY", "ON", "T", "A"]);
    assert_eq!(statements[0].text, "select 1");
}

#[test]
fn an_open_quote_and_a_command_of_psql_are_errors_with_their_line() {
    assert_eq!(split("select 1;\nselect 'a;"), Err(SplitError::Unclosed { line: 2 }));
    assert_eq!(split("select 1;\n\\connect x"), Err(SplitError::PsqlCommand { line: 2 }));
}

#[test]
fn words_are_kept_up_to_their_bound() {
    assert_eq!(split(&"a ".repeat(MAX_WORDS + 5)).unwrap()[0].words.len(), MAX_WORDS);
}

proptest! {
    #[test]
    fn nothing_but_space_comments_and_semicolons_is_lost(sql in "[ab;'()$ \n-]{0,60}") {
        if let Ok(statements) = split(&sql) {
            let mut end = 0;
            for statement in statements {
                let start = statement.text.as_ptr() as usize - sql.as_ptr() as usize;
                let is_nothing = |kind| matches!(kind, Kind::Comment | Kind::Semicolon | Kind::Space);
                prop_assert!(tokens(&sql[end..start]).all(|token| is_nothing(token.kind)));
                end = start + statement.text.len();
            }
            prop_assert!(tokens(&sql[end..]).all(|t| matches!(t.kind, Kind::Comment | Kind::Semicolon | Kind::Space)));
        }
    }
}
