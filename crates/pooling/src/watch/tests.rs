use super::*;

fn body(tag: &str) -> Vec<u8> {
    format!("{tag}\0").into_bytes()
}

/// What a transaction of these texts and tags calls for; a server that reports TimeZone alone.
fn after(texts: &[&str], tags: &[&str]) -> Verdict {
    seen(&mut Watch::default(), texts, tags)
}

fn seen(watch: &mut Watch, texts: &[&str], tags: &[&str]) -> Verdict {
    for text in texts {
        watch.note_text(text.as_bytes(), |name| name == "timezone");
    }
    for tag in tags {
        watch.note_tag(&body(tag), false);
    }
    watch.verdict()
}

fn ask(parameters: bool, held: Held) -> Verdict {
    Verdict::Ask(Inquiry { parameters, held })
}

/// A server of which the question has found this.
fn holding(held: Held) -> Watch {
    let mut watch = Watch::default();
    watch.settle(held);
    watch
}

#[test]
fn what_leaves_nothing_asks_for_nothing() {
    for (texts, tags) in [
        (&["select 1"][..], &["SELECT 1"][..]),
        (&["begin", "set local a = 1", "commit"], &["BEGIN", "SET", "COMMIT"]),
        (&["begin; set local a = 1; set transaction read only"], &["BEGIN", "SET", "SET"]),
        (&["select set_config('a.b', 'c', true)"], &["SELECT 1"]),
        (&["set timezone to 'UTC'"], &["SET"]),
        (&["deallocate all"], &["DEALLOCATE ALL"]),
        (&["select pg_advisory_unlock(1)"], &["SELECT 1"]),
        (&["unlisten *"], &["UNLISTEN"]),
        (&["create table t (a int)", "drop table t"], &["CREATE TABLE", "DROP TABLE"]),
        (&["prepare transaction 'x'"], &["PREPARE TRANSACTION"]),
    ] {
        assert_eq!(after(texts, tags), Verdict::Clean, "{texts:?}");
    }
}

#[test]
fn what_may_leave_something_asks_for_that() {
    for (texts, tags, expected) in [
        (&["set statement_timeout = 1"][..], &["SET"][..], ask(true, Held::NONE)),
        (&["set timezone = 'UTC'; set a.b = 1"], &["SET", "SET"], ask(true, Held::NONE)),
        // From a statement that was prepared before.
        (&[], &["SET"], ask(true, Held::NONE)),
        (&["reset statement_timeout"], &["RESET"], ask(true, Held::NONE)),
        (&["select set_config('a.b', 'c', false)"], &["SELECT 1"], ask(true, Held::NONE)),
        (&["select set_config($1, $2, false)"], &["SELECT 1"], ask(true, Held::UNNAMED)),
        (&["select pg_advisory_lock(1)"], &["SELECT 1"], ask(false, Held::ADVISORY_LOCK)),
        (&["create temp table t (a int)"], &["CREATE TABLE"], ask(false, Held::TEMPORARY)),
        (&["declare c cursor with hold for select 1"], &["DECLARE CURSOR"], ask(false, Held::CURSOR)),
        (&["prepare p as select 1"], &["PREPARE"], ask(false, Held::STATEMENT)),
        (&["listen x"], &["LISTEN"], ask(false, Held::LISTEN)),
    ] {
        assert_eq!(after(texts, tags), expected, "{texts:?}");
    }
    let mut watch = Watch::default();
    watch.note_unread_text();
    assert_eq!(watch.verdict(), ask(true, Held::ADVISORY_LOCK | Held::TEMPORARY));
}

#[test]
fn the_resets_of_drivers_need_no_question_unless_something_else_came_too() {
    let asyncpg = "SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;";
    let tags = ["SELECT 1", "CLOSE CURSOR ALL", "UNLISTEN", "RESET"];
    assert_eq!(after(&[asyncpg], &tags), Verdict::BackAtStart);
    assert_eq!(after(&["DISCARD ALL"], &["DISCARD ALL"]), Verdict::BackAtStart);
    assert_eq!(after(&["DISCARD ALL", "set a = 1"], &["DISCARD ALL", "SET"]), ask(true, Held::NONE));
    assert_eq!(seen(&mut holding(Held::LISTEN), &["DISCARD ALL"], &["DISCARD ALL"]), Verdict::BackAtStart);
    assert_eq!(seen(&mut holding(Held::TEMPORARY), &[asyncpg], &tags), ask(true, Held::TEMPORARY));
    // Inside a transaction it may not last.
    let mut watch = Watch::default();
    watch.note_text(b"reset all", |_| false);
    watch.note_tag(&body("RESET"), true);
    assert_eq!(watch.verdict(), ask(true, Held::NONE));
}

#[test]
fn what_is_held_keeps_the_server_until_it_may_be_gone() {
    let mut watch = holding(Held::ADVISORY_LOCK | Held::LISTEN);
    assert!(watch.keeps());
    assert_eq!(seen(&mut watch, &["select 1"], &["SELECT 1"]), Verdict::Keep);
    assert_eq!(
        seen(&mut watch, &["select pg_advisory_unlock(1)"], &["SELECT 1"]),
        ask(false, Held::ADVISORY_LOCK | Held::LISTEN)
    );
    assert!(!watch.keeps());
    watch.settle(Held::LISTEN);
    assert_eq!(seen(&mut watch, &["unlisten x"], &["UNLISTEN"]), ask(false, Held::LISTEN));
    watch.settle(Held::NONE);
    assert_eq!(watch.verdict(), Verdict::Clean);
}

#[test]
fn names_that_the_server_does_not_list_are_gathered_and_bounded() {
    let mut watch = Watch::default();
    for number in 0..=MAX_OWN_NAMES {
        seen(&mut watch, &[&format!("set App.x{number} = 1; set app.x0 = 2")], &["SET", "SET"]);
    }
    assert_eq!(watch.held(), Held::UNNAMED);
    let names = watch.take_names();
    assert_eq!((names.len(), &*names[1]), (MAX_OWN_NAMES, "app.x1"));
    let asked = question(Inquiry { parameters: true, held: Held::CURSOR }, &names[..1]);
    assert!(asked.contains("pg_catalog.current_setting('app.x0', true)"), "{asked}");
    assert!(asked.contains("pg_cursors") && !asked.contains("pg_locks"), "{asked}");
}

#[test]
fn the_answer_is_read_and_a_broken_one_breaks_nothing() {
    let row = |values: [Option<&str>; 3]| {
        let mut body = vec![0, 3];
        for value in values {
            match value {
                None => body.extend((-1_i32).to_be_bytes()),
                Some(value) => {
                    body.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
                    body.extend(value.as_bytes());
                }
            }
        }
        body
    };
    let mut found = Found::default();
    for values in [
        [Some("parameter"), Some("DateStyle"), Some("ISO")],
        [Some("parameter"), Some("role"), Some("none")],
        [Some("parameter"), Some("a.b"), Some("")],
        [Some("parameter"), Some("a.c"), None],
        [Some("listen"), None, None],
    ] {
        found.take_row(&row(values));
    }
    assert_eq!(found.parameters, [("datestyle".to_owned(), "ISO".to_owned())]);
    assert_eq!(found.held, Held::LISTEN);
    let long = "x".repeat(MAX_VALUE + 1);
    found.take_row(&row([Some("parameter"), Some("a"), Some(&long)]));
    assert_eq!((found.held, found.parameters.len()), (Held::LISTEN | Held::UNNAMED, 1));
    let whole = row([Some("parameter"), Some("a"), Some("b")]);
    for end in 0..whole.len() {
        Found::default().take_row(&whole[..end]);
    }
}

const MAX_VALUE: usize = crate::parameters::MAX_VALUE_BYTES;
