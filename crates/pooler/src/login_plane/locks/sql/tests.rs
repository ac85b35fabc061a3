use super::*;
use locks::{MAX_ROWS, Party};

#[test]
fn the_query_has_the_limit_of_the_rules_and_asks_old_servers_for_nothing_that_they_do_not_have() {
    for version in [Some("15.14 (Debian 15.14-0+deb12u1)"), Some("18beta1"), Some("13.20"), Some("?"), None] {
        let query = look(version);
        assert!(query.ends_with(&format!("LIMIT {MAX_ROWS}")), "{query}");
        let knows = version.is_some_and(|version| version.starts_with("15") || version.starts_with("18"));
        assert_eq!(query.contains("waitstart"), knows, "{version:?}");
    }
}

fn values(values: [Option<&str>; 12]) -> Row {
    values.map(|value| value.map(str::to_owned)).into()
}

#[test]
fn rows_are_read_with_what_the_role_may_not_see_left_empty() {
    let object = Some("relation/5/16384");
    let row = values([
        object,
        Some("relation"),
        Some("public.t"),
        Some("AccessExclusiveLock"),
        Some("f"),
        Some("42"),
        Some("40"),
        Some("1500"),
        None,
        None,
        Some("psql"),
        Some("<insufficient privilege>"),
    ]);
    let read = lock_row(&row).unwrap();
    assert_eq!((read.backend.pid, read.backend.leader, read.granted), (42, 40, false));
    assert_eq!((read.waited, read.mode), (Some(Duration::from_millis(1500)), LockMode::AccessExclusive));
    assert_eq!((read.backend.state.as_str(), read.relation.as_deref()), ("", Some("public.t")));
    let siread = values([
        object,
        Some("relation"),
        None,
        Some("SIReadLock"),
        Some("t"),
        Some("1"),
        None,
        None,
        None,
        None,
        None,
        None,
    ]);
    assert!(lock_row(&siread).is_none());
    assert!(lock_row(&vec![None]).is_none());
}

#[test]
fn whoever_is_told_to_stop_must_stand_there_still() {
    let party = Party {
        pid: 42,
        mode: LockMode::AccessExclusive,
        is_relation: true,
        state: String::new(),
        user: String::new(),
        application: String::new(),
        statement: "'; drop".to_owned(),
        is_ours: false,
    };
    let of = |verb| act(&Action { party: party.clone(), verb });
    assert_eq!(
        of(Verb::CancelWaiter),
        "SELECT pg_cancel_backend(pid) FROM pg_locks WHERE pid = 42 AND mode = 'AccessExclusiveLock' \
         AND locktype = 'relation' AND NOT granted LIMIT 1"
    );
    assert!(of(Verb::TerminateBlocker).starts_with("SELECT pg_terminate_backend(pid)"));
    assert!(of(Verb::CancelBlocker).contains(" AND granted"));
}
