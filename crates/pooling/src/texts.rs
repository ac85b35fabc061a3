//! What clients are told. The texts are PgBouncer's where it has one, since people search for them.

use overload::patience::Patience;
use overload::shedding::ShedCause;
use pgwire::message::{ErrorFields, Severity, error_response};
use std::time::Duration;

/// The simple query protocol is not allowed (`disable_pqexec`); PgBouncer's words.
pub(crate) const NO_SIMPLE_QUERIES: &str = "PQexec disallowed";
/// What the log says of a server beyond the size of its pool; PgBouncer's words.
pub(crate) const RESERVE_TAKEN: &str = "taking connection from reserve_pool";
/// What the log says of the first pool of a name that the `*` line serves; PgBouncer's words.
pub(crate) const AUTOMATIC_DATABASE: &str = "registered new auto-database";
/// What the log says of a pool that is forgotten; PgBouncer's words.
pub(crate) const IDLE_POOL: &str = "cleaning up idle pool";

/// What the caller of a request is told that is not started.
const IS_OVERLOADED: &str = "the database is overloaded, this request was not started";

/// No server in time: class 53 (insufficient resources), so that it never looks like a dead server.
pub(crate) const QUERY_WAIT_TIMEOUT: &str = "53H01";
/// No further server may stay with one client: class 53 as well.
pub(crate) const TOO_MANY_PINNED: &str = "53H02";
/// The caller would not wait long enough for its answer: class 53 as well.
pub(crate) const OVERLOADED: &str = "53H03";
/// PostgreSQL's "invalid parameter value".
pub(crate) const INVALID_PARAMETER_VALUE: &str = "22023";
/// Too many attempts to connect, or too many that failed: class 53 as well.
pub(crate) const ATTEMPT_REFUSED: &str = "53H04";
/// No server can be opened.
pub(crate) const CANNOT_CONNECT: &str = "08001";
/// PostgreSQL's "too many connections".
pub(crate) const TOO_MANY_CONNECTIONS: &str = "53300";
/// PostgreSQL's "query canceled".
pub(crate) const QUERY_CANCELED: &str = "57014";
/// PostgreSQL's "admin shutdown".
pub(crate) const ADMIN_SHUTDOWN: &str = "57P01";
/// PostgreSQL's "protocol violation".
pub(crate) const PROTOCOL_VIOLATION: &str = "08P01";
/// PostgreSQL's "connection failure".
pub(crate) const CONNECTION_FAILURE: &str = "08006";
/// PostgreSQL's "program limit exceeded".
pub(crate) const PROGRAM_LIMIT_EXCEEDED: &str = "54000";
/// PostgreSQL's "invalid catalog name".
pub(crate) const NO_SUCH_DATABASE: &str = "3D000";
/// PostgreSQL's "invalid authorization specification".
pub(crate) const NOT_AUTHORIZED: &str = "28000";
/// PostgreSQL's "feature not supported".
pub(crate) const NOT_SUPPORTED: &str = "0A000";
/// PostgreSQL's "idle in transaction session timeout".
pub(crate) const IDLE_IN_TRANSACTION_TIMEOUT: &str = "25P03";
/// PostgreSQL's "idle session timeout".
pub(crate) const IDLE_SESSION_TIMEOUT: &str = "57P05";

/// What cannot follow the client is not allowed.
pub(crate) fn refused_state(pool_mode: &str, what: &str) -> Vec<u8> {
    let text = format!("session state is not allowed in {pool_mode} pooling mode: {what}");
    let hint = "Give it up before the end of the transaction, or have pool_mode = session for this database or user.";
    error_response(Severity::Fatal, NOT_SUPPORTED, &text, None, Some(hint))
}

/// There is no room for one more client that keeps its server.
pub(crate) fn too_many_pinned(what: &str) -> Vec<u8> {
    let text = format!("too many clients keep a server connection of this pool for themselves: {what}");
    let hint = "Give it up before the end of the transaction, raise pool_size, or have pool_mode = session for this \
                database or user.";
    error_response(Severity::Fatal, TOO_MANY_PINNED, &text, None, Some(hint))
}

/// The request is not started, since its caller would not wait long enough for the answer.
pub(crate) fn overloaded(
    cause: ShedCause,
    patience: Patience,
    waited: Duration,
    retry_after: Duration,
) -> Vec<u8> {
    let waited_ms = waited.as_millis();
    let patience = format!("{} ms ({})", patience.limit().as_millis(), patience.source().label());
    let detail = match cause {
        ShedCause::Predicted => {
            format!("It would have waited for longer than its caller does, which is {patience}.")
        }
        ShedCause::Deadline => {
            format!("It has waited for {waited_ms} ms, and its caller waits for {patience}.")
        }
        ShedCause::Standing => format!(
            "It has waited for {waited_ms} ms in a line that has not become shorter; its caller waits for {patience}."
        ),
    };
    let hint = format!("Nothing was sent to the server; retry after {} ms.", retry_after.as_millis());
    error_response(Severity::Error, OVERLOADED, IS_OVERLOADED, Some(&detail), Some(&hint))
}

/// An error that ends the session.
pub(crate) fn fatal(sqlstate: &str, message: &str) -> Vec<u8> {
    error_response(Severity::Fatal, sqlstate, message, None, None)
}

/// An error that ends the session, with what to do about it.
pub(crate) fn fatal_with_hint(sqlstate: &str, message: &str, hint: &str) -> Vec<u8> {
    error_response(Severity::Fatal, sqlstate, message, None, Some(hint))
}

/// An error that ends the session, with detail.
pub(crate) fn fatal_with_detail(sqlstate: &str, message: &str, detail: &str) -> Vec<u8> {
    error_response(Severity::Fatal, sqlstate, message, Some(detail), None)
}

/// An error that ends the request alone.
pub(crate) fn error(sqlstate: &str, message: &str, hint: Option<&str>) -> Vec<u8> {
    error_response(Severity::Error, sqlstate, message, None, hint)
}

/// Something to read, which changes nothing.
pub(crate) fn notice(message: &str) -> Vec<u8> {
    let mut notice = Vec::new();
    ErrorFields::new(Severity::Notice, "00000", message).write_notice(&mut notice);
    notice
}
