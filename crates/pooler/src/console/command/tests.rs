use super::*;
use proptest::prelude::*;

fn command(text: &str) -> Result<Command, Refusal> {
    let mut all = statements(text);
    let first = all.next().unwrap_or_default();
    assert_eq!(all.next(), None, "more than one statement in {text}");
    parse(first)
}

#[test]
fn commands_are_read_in_any_case_with_or_without_an_end() {
    for text in [
        "show pools",
        "SHOW POOLS;",
        "  Show\n\tPools ; ",
        "show \"pools\"",
        ";;show pools;;",
        "select pools",
    ] {
        assert_eq!(command(text), Ok(Command::Show(Show::Pools)), "{text}");
    }
    assert_eq!(command("ReLoad;"), Ok(Command::Reload));
}

#[test]
fn every_result_has_its_name() {
    for (name, show) in SHOWS {
        assert_eq!(command(&format!("SHOW {};", name.to_uppercase())), Ok(Command::Show(*show)));
    }
}

#[test]
fn what_only_pgbouncer_has_is_refused_by_name() {
    for (text, name) in [
        ("PAUSE", "PAUSE"),
        ("pause db1;", "PAUSE"),
        ("KILL_CLIENT 7", "KILL_CLIENT"),
        ("SHUTDOWN WAIT_FOR_CLIENTS", "SHUTDOWN"),
        ("show databases", "SHOW DATABASES"),
        ("SET max_client_conn = 5", "SET"),
        ("SET max_client_conn='5';", "SET"),
    ] {
        assert_eq!(command(text), Err(Refusal::NotBuilt(name.to_owned())), "{text}");
    }
}

#[test]
fn what_drivers_ask_by_themselves_is_answered() {
    assert_eq!(command("SHOW TimeZone"), Ok(Command::ShowParameter("timezone", "GMT")));
    assert_eq!(command("SET extra_float_digits = 3"), Ok(Command::IgnoredSet));
    assert_eq!(command("set client_encoding to 'UTF8'"), Ok(Command::IgnoredSet));
}

#[test]
fn anything_else_is_invalid() {
    for text in [
        "show",
        "show pools clients",
        "reload now",
        "select 1",
        "foo",
        "show 'pools'",
        "show pools -- x",
        "set x",
        "show \"pools",
    ] {
        assert_eq!(command(text), Err(Refusal::Invalid), "{text}");
    }
}

#[test]
fn a_semicolon_in_quotes_ends_nothing() {
    let all: Vec<_> = statements("set a = 'x;''y'; show \"b;\"\"c\" ;; show pools").collect();
    assert_eq!(all, ["set a = 'x;''y'", "show \"b;\"\"c\"", "show pools"]);
    assert_eq!(statements(" ; ;").count(), 0);
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in any::<String>()) {
        for statement in statements(&text) {
            let _ = parse(statement);
        }
    }

    #[test]
    fn quotes_and_signs_in_any_order_do_not_break_the_reader(text in "[a-c\"'=;ä ]{0,30}") {
        for statement in statements(&text) {
            prop_assert!(!statement.is_empty());
            let _ = parse(statement);
        }
    }
}
