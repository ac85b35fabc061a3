//! A file to units: what is run in one transaction, and what must not be in any.

use locks::sql::{SplitError, Statement, split};

/// What is run, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Each is done whole, or not at all.
    pub units: Vec<Unit>,
}

/// Statements that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Their texts.
    pub statements: Vec<String>,
    /// The line that the first starts in.
    pub line: usize,
    /// In one transaction; a statement that PostgreSQL takes in none stands alone.
    pub in_transaction: bool,
}

/// A file that cannot be run so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// It cannot be read as SQL.
    #[error(transparent)]
    Split(#[from] SplitError),
    /// Nothing in it.
    #[error("there is no statement in it")]
    Empty,
    /// A statement that belongs to psql or to a session.
    #[error("line {line}: {reason}")]
    Refused {
        /// Where.
        line: usize,
        /// Why.
        reason: &'static str,
    },
}

impl Plan {
    /// Reads a file. Statements between BEGIN and COMMIT are a unit; so are all others that follow one another, unless
    /// `one_by_one`.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn read(sql: &str, one_by_one: bool) -> Result<Self, PlanError> {
        let mut units: Vec<Unit> = Vec::new();
        // The unit that further statements belong to.
        let mut is_open = false;
        let mut explicit: Option<usize> = None;
        for statement in split(sql)? {
            let line = statement.line;
            let refused = |reason| Err(PlanError::Refused { line, reason });
            match kind(&statement) {
                Kind::Begin if explicit.is_some() => return refused("a transaction is open already"),
                Kind::Begin => (explicit, is_open) = (Some(line), false),
                Kind::Commit if explicit.is_none() => return refused("there is no BEGIN before it"),
                Kind::Commit => (explicit, is_open) = (None, false),
                Kind::Refused(reason) => return refused(reason),
                Kind::Alone if explicit.is_some() => {
                    return refused("PostgreSQL runs it in no transaction; take it out of BEGIN … COMMIT");
                }
                Kind::Alone => {
                    units.push(unit(&statement, false));
                    is_open = false;
                }
                Kind::Plain => {
                    match units.last_mut().filter(|_| is_open) {
                        Some(unit) => unit.statements.push(statement.text.to_owned()),
                        None => units.push(unit(&statement, true)),
                    }
                    is_open = explicit.is_some() || !one_by_one;
                }
            }
        }
        if let Some(line) = explicit {
            return Err(PlanError::Refused {
                line,
                reason: "the transaction that begins here has no COMMIT",
            });
        }
        if units.is_empty() { Err(PlanError::Empty) } else { Ok(Self { units }) }
    }
}

fn unit(statement: &Statement<'_>, in_transaction: bool) -> Unit {
    Unit { statements: vec![statement.text.to_owned()], line: statement.line, in_transaction }
}

enum Kind {
    Alone,
    Begin,
    Commit,
    Plain,
    Refused(&'static str),
}

fn kind(statement: &Statement<'_>) -> Kind {
    let words: Vec<&str> = statement.words.iter().map(String::as_str).collect();
    let has = |word| words.contains(&word);
    match words.as_slice() {
        ["BEGIN", ..] | ["START", "TRANSACTION", ..] => Kind::Begin,
        ["COMMIT", "PREPARED", ..] | ["PREPARE", "TRANSACTION", ..] => {
            Kind::Refused("a prepared transaction holds its locks for as long as it likes")
        }
        ["COMMIT", ..] | ["END", ..] => Kind::Commit,
        ["ROLLBACK" | "ABORT" | "SAVEPOINT" | "RELEASE", ..] => {
            Kind::Refused("a migration is done or not; take ROLLBACK and SAVEPOINT out")
        }
        ["COPY", ..] if has("STDIN") || has("STDOUT") => {
            Kind::Refused("COPY from or to the client is psql's; use a file of INSERTs")
        }
        ["SET", ..] | ["RESET", ..] if has("LOCK_TIMEOUT") || words.last() == Some(&"ALL") => {
            Kind::Refused("lock_timeout is set for each try; see --lock-timeout")
        }
        ["VACUUM" | "CHECKPOINT", ..]
        | ["ALTER", "SYSTEM", ..]
        | ["CREATE" | "DROP", "DATABASE" | "TABLESPACE" | "SUBSCRIPTION", ..] => Kind::Alone,
        ["CREATE" | "DROP" | "REINDEX" | "ALTER", ..] if has("CONCURRENTLY") => Kind::Alone,
        _ => Kind::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(sql: &str, one_by_one: bool) -> Vec<(usize, bool)> {
        let plan = Plan::read(sql, one_by_one).unwrap();
        plan.units.iter().map(|unit| (unit.statements.len(), unit.in_transaction)).collect()
    }

    #[test]
    fn a_file_is_one_transaction_unless_something_in_it_runs_in_none() {
        assert_eq!(shape("create table a(); alter table b add c int;", false), [(2, true)]);
        assert_eq!(shape("create table a(); alter table b add c int;", true), [(1, true), (1, true)]);
        let mixed =
            "create table a(); create index concurrently i on b(c); alter table b add d int; vacuum b";
        assert_eq!(shape(mixed, false), [(1, true), (1, false), (1, true), (1, false)]);
        let explicit = "begin; alter table a add b int; alter table c add d int; commit; drop table e";
        assert_eq!(shape(explicit, true), [(2, true), (1, true)]);
    }

    #[test]
    fn what_would_take_the_timeout_away_or_leave_a_transaction_open_is_refused_with_its_line() {
        for sql in [
            "\nset lock_timeout = 0",
            "\nset session lock_timeout to '1h'",
            "\nreset all",
            "\nrollback",
            "\nbegin; create table a()",
            "\ncommit",
            "\nsavepoint x",
            "\ncopy t from stdin",
            "\nbegin; begin; commit",
            "\nbegin; vacuum a; commit",
            "\nprepare transaction 'x'",
        ] {
            let error = Plan::read(sql, false).unwrap_err();
            assert!(matches!(error, PlanError::Refused { line: 2, .. }), "{sql}: {error}");
        }
        assert_eq!(Plan::read("-- nothing\n;", false), Err(PlanError::Empty));
    }
}
