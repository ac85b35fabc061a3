use std::collections::BTreeSet;

use super::*;

#[test]
fn texts_of_postgresql_are_told_apart() {
    let full = |scope| Cause::TooManyConnections { scope };
    for (code, message, cause) in [
        ("57P03", "the database system is starting up", Cause::StartingUp),
        ("57P03", "the database system is not yet accepting connections", Cause::StartingUp),
        ("57P03", "the database system is in recovery mode", Cause::StartingUp),
        ("57P03", "the database system is shutting down", Cause::ShuttingDown),
        ("57P03", "das Datenbanksystem startet", Cause::StartingUp),
        ("57P01", "terminating connection due to administrator command", Cause::ShuttingDown),
        ("57P02", "terminating connection because of crash of another server process", Cause::ShuttingDown),
        ("53300", "sorry, too many clients already", full(Scope::Server)),
        (
            "53300",
            "remaining connection slots are reserved for non-replication superuser connections",
            full(Scope::Server),
        ),
        (
            "53300",
            "remaining connection slots are reserved for roles with the SUPERUSER attribute",
            full(Scope::Server),
        ),
        ("53300", "too many connections for role \"app\"", full(Scope::Role)),
        ("53300", "too many connections for database \"shop\"", full(Scope::Database)),
        ("53300", "tut mir leid, schon zu viele Verbindungen", full(Scope::Server)),
        ("3D000", "database \"nope\" does not exist", Cause::NoSuchDatabase),
        ("28P01", "password authentication failed for user \"app\"", Cause::WrongPassword),
        ("28000", "no pg_hba.conf entry for host \"127.0.0.1\"", Cause::NotAllowed),
        ("28000", "role \"app\" does not exist", Cause::NotAllowed),
        ("42501", "permission denied for database \"shop\"", Cause::NotAllowed),
        ("0A000", "unsupported frontend protocol 3.2", Cause::Protocol),
        ("08P01", "server login failed", Cause::Other),
        ("XX000", "cache lookup failed", Cause::Other),
        ("", "", Cause::Other),
    ] {
        assert_eq!(Cause::from_sqlstate(code, message), cause, "{code} {message}");
    }
}

#[test]
fn a_role_with_a_misleading_name_does_not_change_the_scope() {
    let message = "too many connections for role \"too many connections for database\"";
    let cause = Cause::from_sqlstate("53300", message);
    assert_eq!(cause, Cause::TooManyConnections { scope: Scope::Role });
}

#[test]
fn only_what_a_person_has_to_mend_is_permanent() {
    let permanent: Vec<Cause> = Cause::ALL.into_iter().filter(|cause| cause.is_permanent()).collect();
    assert_eq!(permanent, [Cause::NoSuchDatabase, Cause::WrongPassword, Cause::NotAllowed]);
}

#[test]
fn a_fault_of_one_pool_does_not_concern_its_neighbours() {
    for cause in Cause::ALL {
        if cause.is_permanent() {
            assert!(!cause.concerns_whole_server(), "{cause:?}");
        }
    }
    assert!(!Cause::TooManyConnections { scope: Scope::Role }.concerns_whole_server());
    assert!(!Cause::TooManyConnections { scope: Scope::Database }.concerns_whole_server());
    assert!(Cause::TooManyConnections { scope: Scope::Server }.concerns_whole_server());
    assert!(Cause::Refused.concerns_whole_server());
}

#[test]
fn every_cause_has_a_label_of_its_own_that_metrics_accept() {
    let labels: BTreeSet<&str> = Cause::ALL.into_iter().map(Cause::label).collect();
    assert_eq!(labels.len(), Cause::ALL.len());
    for label in labels {
        assert!(label.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{label}");
    }
}

#[test]
fn every_wait_begins_above_zero_and_ends_at_fifteen_seconds_at_most() {
    for cause in Cause::ALL {
        assert!(!cause.first_wait().is_zero(), "{cause:?}");
        assert!(cause.first_wait() < cause.greatest_wait(), "{cause:?}");
        assert!(cause.greatest_wait() <= Duration::from_secs(15), "{cause:?}");
    }
}

#[test]
fn waits_follow_what_the_cause_costs_the_server() {
    let ms = Duration::from_millis;
    for (cause, first, greatest) in [
        (Cause::Refused, 50, 1_000),
        (Cause::Unreachable, 50, 1_000),
        (Cause::StartingUp, 50, 250),
        (Cause::TimedOut, 100, 2_000),
        (Cause::TooManyConnections { scope: Scope::Server }, 200, 5_000),
        (Cause::TooManyConnections { scope: Scope::Role }, 200, 5_000),
        (Cause::NoSuchDatabase, 1_000, 15_000),
        (Cause::WrongPassword, 1_000, 15_000),
    ] {
        assert_eq!((cause.first_wait(), cause.greatest_wait()), (ms(first), ms(greatest)), "{cause:?}");
    }
}
