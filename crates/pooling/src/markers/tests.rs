use super::*;

fn of(text: &str) -> Markers {
    let plain = markers(text.as_bytes());
    // As a message carries it, and shouted.
    assert_eq!(markers(format!("{text}\0").as_bytes()), plain, "{text}");
    assert_eq!(markers(text.to_uppercase().as_bytes()), plain, "{text}");
    plain
}

fn named(text: &str) -> Vec<Named> {
    let mut names = Vec::new();
    parameters_named(text.as_bytes(), |name| names.push(name));
    names
}

#[test]
fn plain_statements_have_no_marks() {
    for text in [
        "",
        ";",
        "select 1",
        "SELECT abalance FROM pgbench_accounts WHERE aid = 1234;",
        "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = 7",
        "insert into history (mtime) values (current_timestamp)",
        "select id, cast(old as text), city from category where replaced",
        "begin; select 1; commit",
        "create table t (a int)",
        "vacuum",
        "show all",
        "select 'x;y'",
        "update t set a = b; update u set c = d",
    ] {
        let found = of(text);
        assert!(found.is_empty(), "{text}: {found:?}");
    }
}

#[test]
fn words_are_found_wherever_they_stand() {
    for (text, expected) in [
        ("select pg_advisory_lock(1)", Markers::ADVISORY),
        ("select pg_try_advisory_lock_shared($1, $2)", Markers::ADVISORY),
        ("select pg_advisory_unlock(1)", Markers::ADVISORY_UNLOCK),
        ("select pg_advisory_lock(1), pg_advisory_unlock(2)", Markers::ADVISORY | Markers::ADVISORY_UNLOCK),
        ("create temp table t (a int)", Markers::TEMP),
        ("create table pg_temp.t (a int)", Markers::TEMP),
        ("select 1 as a into temporary t", Markers::TEMP),
        ("declare c cursor with hold for select 1", Markers::HOLD),
        ("deallocate p", Markers::DEALLOCATE),
        ("select 1; deallocate all", Markers::DEALLOCATE),
        ("discard temp", Markers::DISCARD | Markers::TEMP),
        ("discard plans", Markers::DISCARD),
        ("prepare p as select 1", Markers::PREPARE),
        ("set a to b", Markers::SET),
        ("  /* a; /* b */ */ -- c\n set session a = b", Markers::SET),
        ("begin; set search_path to x; commit", Markers::SET),
        ("set local a = 1", Markers::SET_LOCAL),
        ("begin;set local a = 1;set transaction read only;set constraints all deferred", Markers::SET_LOCAL),
        ("set local_preload_libraries = 'x'", Markers::SET),
        ("set local a = 1; set b = 2", Markers::SET_LOCAL | Markers::SET),
        ("select set_config('a.b', 'c', false)", Markers::SET_CONFIG),
        ("select set_config('a.b', $1, true)", Markers::NONE),
        ("select set_config('a.b', f('x,y)', (1)), true) , set_config('c', 'd', 't')", Markers::NONE),
        ("select set_config('a.b', 'it''s', true), set_config('c', 'd', $1)", Markers::SET_CONFIG),
        ("select set_config('a', 'b'", Markers::SET_CONFIG),
        ("do $$ begin set a.b = 1; end $$", Markers::SET_CONFIG),
        ("do $$ begin set local a.b = 1; perform reset(1); end $$", Markers::NONE),
    ] {
        assert_eq!(of(text), expected, "{text}");
    }
}

#[test]
fn a_word_is_found_at_every_place_of_a_long_text() {
    for (word, mark) in WORDS {
        for place in 0..70 {
            let text = [&vec![b'x'; place], word, &[b'x'; 33]].concat();
            assert!(markers(&text).has(mark), "{} at {place}", text.escape_ascii());
            if RARE_LETTERS.iter().any(|letters| word.windows(3).any(|window| window == letters)) {
                let text = [b"select ", &vec![b' '; place][..], word, b" x"].concat();
                assert!(markers(&text).has(mark), "{} at {place}", text.escape_ascii());
            }
            let text = [b"select ", &vec![b' '; place][..], b"; ", word].concat();
            assert!(markers(&text).has(mark), "{} at {place}", text.escape_ascii());
        }
    }
}

#[test]
fn the_resets_of_drivers_are_known() {
    let asyncpg = "SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;";
    assert_eq!(of(asyncpg), Markers::RESET_ALL | Markers::ADVISORY_UNLOCK);
    assert_eq!(of("DISCARD ALL"), Markers::RESET_ALL | Markers::DISCARD);
    let npgsql = "SET SESSION AUTHORIZATION DEFAULT;RESET ALL;CLOSE ALL;UNLISTEN *;\
                  SELECT pg_advisory_unlock_all();DISCARD SEQUENCES;DISCARD TEMP";
    assert_eq!(of(npgsql), Markers::RESET_ALL | Markers::ADVISORY_UNLOCK | Markers::DISCARD);
    assert_eq!(of("RESET ALL; SET a = b"), Markers::SET);
    assert_eq!(of(&format!("RESET ALL;{}", " ".repeat(600))), Markers::RESET_ALL);
    assert_eq!(of(&format!("{}RESET ALL", " ".repeat(600))), Markers::NONE);
}

#[test]
fn names_of_parameters_are_read() {
    let is = |name: &str| Named::Parameter(name.to_owned());
    assert_eq!(named("SET Search_Path TO a, b"), [is("search_path")]);
    assert_eq!(named("set session \"app\".\"User\"='x';set c.d=1"), [is("app.user"), is("c.d")]);
    assert_eq!(named("SET LOCAL a.b = 1; select 1"), []);
    assert_eq!(named("select set_config('A.b', 'c', false)"), [is("a.b")]);
    assert_eq!(named("select set_config('a.b'::text, 'c', false)"), [is("a.b")]);
    assert_eq!(named("select set_config($1, $2, $3)"), [Named::Unknown]);
    assert_eq!(named("select set_config('a''b', '', false)"), [Named::Unknown]);
    assert_eq!(named("select set_config('a' || 'b', '', false)"), [Named::Unknown]);
    assert_eq!(named("do $$ begin set a.b = 1; update t set c = 2; end $$"), [is("a.b"), is("c")]);
    assert_eq!(named("do $$ begin execute 'set a.b to 1'; set local c.d = 1; end $$"), [is("a.b")]);
    assert_eq!(named("create function f() as $$ select set_config(x, y, false) $$"), []);
}

#[test]
fn names_that_postgresql_would_not_take_are_told_apart() {
    for good in ["search_path", "DateStyle", "a.b", "a.b.c", "_x$1", "é.x"] {
        assert!(is_parameter_name(good), "{good}");
    }
    for bad in ["", ".", "a.", ".a", "a b", "a;b", "1a", "a\"b", "a-b", "a'b", &"x".repeat(128)] {
        assert!(!is_parameter_name(bad), "{bad}");
    }
}

#[test]
fn any_bytes_are_taken() {
    let mut state = 1_u64;
    for length in 0..2_000 {
        let bytes: Vec<u8> = (0..length % 97)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                b"set_config('a,)\";-/*\n\0\xff SET"[(state >> 33) as usize % 27]
            })
            .collect();
        let _ = markers(&bytes);
        parameters_named(&bytes, |_| ());
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the time that it takes is what is tested")]
fn the_time_for_a_text_does_not_grow_with_its_square() {
    let length = 1 << 20;
    for part in [";/*", ";--", ";/**/", "set_config(", "set/*", "set_config('a', "] {
        let text = format!("DO {}", part.repeat(length / part.len()));
        let begun = std::time::Instant::now();
        let found = markers(text.as_bytes());
        parameters_named(text.as_bytes(), |_| ());
        // With the square it is minutes.
        assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{part}: {found:?}");
    }
}
