//! What was asked for: statements of one message, words of a statement.
//!
//! The grammar is PgBouncer's: a command with at most one word behind it, and `SET key = value`.

/// A statement that is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// A result.
    Show(Show),
    /// The value of a parameter that drivers ask for by themselves.
    ShowParameter(&'static str, &'static str),
    /// SET of such a parameter, which changes nothing.
    IgnoredSet,
    /// RELOAD.
    Reload,
}

/// Results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Show {
    Budget,
    Clients,
    Config,
    ConfigHash,
    ConfigTruth,
    Events,
    Help,
    Holders,
    Lanes,
    Locks,
    Overload,
    Patience,
    Pools,
    Servers,
    Stalls,
    Stats,
    StatsAverages,
    StatsTotals,
    Storms,
    Version,
}

/// Why a statement is not a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No command of the console.
    Invalid,
    /// A command of PgBouncer's console that is not built yet, by its name.
    NotBuilt(String),
}

const SHOWS: &[(&str, Show)] = &[
    ("budget", Show::Budget),
    ("clients", Show::Clients),
    ("config", Show::Config),
    ("config_hash", Show::ConfigHash),
    ("config_truth", Show::ConfigTruth),
    ("events", Show::Events),
    ("help", Show::Help),
    ("holders", Show::Holders),
    ("lanes", Show::Lanes),
    ("locks", Show::Locks),
    ("overload", Show::Overload),
    ("patience", Show::Patience),
    ("pools", Show::Pools),
    ("servers", Show::Servers),
    ("stalls", Show::Stalls),
    ("stats", Show::Stats),
    ("stats_averages", Show::StatsAverages),
    ("stats_totals", Show::StatsTotals),
    ("storms", Show::Storms),
    ("version", Show::Version),
];

const SHOWS_NOT_BUILT: &[&str] = &[
    "active_sockets",
    "databases",
    "dns_hosts",
    "dns_zones",
    "fds",
    "lists",
    "mem",
    "peer_pools",
    "peers",
    "sockets",
    "state",
    "totals",
    "users",
];

const COMMANDS_NOT_BUILT: &[&str] = &[
    "disable",
    "enable",
    "kill",
    "kill_client",
    "pause",
    "reconnect",
    "resume",
    "shutdown",
    "suspend",
    "wait_close",
];

/// Drivers read and set these by themselves when they connect; the values are PgBouncer's.
const PARAMETERS: &[(&str, &str)] = &[
    ("client_encoding", "UTF-8"),
    ("datestyle", "ISO"),
    ("default_transaction_isolation", "read committed"),
    ("extra_float_digits", "2"),
    ("standard_conforming_strings", "on"),
    ("timezone", "GMT"),
];

/// The statements of a message, each without its `;`. Empty ones are left out.
pub(super) fn statements(message: &str) -> impl Iterator<Item = &str> {
    let mut rest = message;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = statement_end(rest);
            let statement = rest[..end].trim();
            rest = rest.get(end + 1..).unwrap_or_default();
            if !statement.is_empty() {
                return Some(statement);
            }
        }
        None
    })
}

/// Reads a statement without its `;`.
pub(super) fn parse(statement: &str) -> Result<Command, Refusal> {
    let words = words(statement).ok_or(Refusal::Invalid)?;
    let words: Vec<&Word> = words.iter().collect();
    match words.as_slice() {
        [Word::Name(command)] => plain_command(command, None),
        [Word::Name(command), Word::Name(argument)] => plain_command(command, Some(argument)),
        [Word::Name(set), Word::Name(key), sign, Word::Name(_) | Word::Text]
            if set == "set" && (**sign == Word::Equals || **sign == Word::Name("to".to_owned())) =>
        {
            if PARAMETERS.iter().any(|(name, _)| name == key) {
                return Ok(Command::IgnoredSet);
            }
            Err(Refusal::NotBuilt("SET".to_owned()))
        }
        _ => Err(Refusal::Invalid),
    }
}

fn plain_command(command: &str, argument: Option<&str>) -> Result<Command, Refusal> {
    match (command, argument) {
        // SELECT is the same word to PgBouncer.
        ("show" | "select", Some(what)) => show(what),
        ("reload", None) => Ok(Command::Reload),
        (command, _) if COMMANDS_NOT_BUILT.contains(&command) => {
            Err(Refusal::NotBuilt(command.to_uppercase()))
        }
        _ => Err(Refusal::Invalid),
    }
}

fn show(what: &str) -> Result<Command, Refusal> {
    if let Some((name, value)) = PARAMETERS.iter().find(|(name, _)| *name == what) {
        return Ok(Command::ShowParameter(name, value));
    }
    if let Some((_, show)) = SHOWS.iter().find(|(name, _)| *name == what) {
        return Ok(Command::Show(*show));
    }
    if SHOWS_NOT_BUILT.contains(&what) {
        return Err(Refusal::NotBuilt(format!("SHOW {}", what.to_uppercase())));
    }
    Err(Refusal::Invalid)
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    /// Bare or in double quotes; bare ones in lower case.
    Name(String),
    /// In single quotes; its value is of no use yet.
    Text,
    Equals,
}

/// The words of a statement; `None` if something else stands in it, or a quote is not closed.
fn words(statement: &str) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let mut rest = statement.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' | '\'' => {
                let length = quoted_length(rest)?;
                words.push(if first == '"' {
                    Word::Name(rest[1..length - 1].replace("\"\"", "\""))
                } else {
                    Word::Text
                });
                length
            }
            '=' => {
                words.push(Word::Equals);
                1
            }
            _ => {
                let length = rest.find(|c: char| !is_name_character(c)).unwrap_or(rest.len());
                if length == 0 {
                    return None;
                }
                words.push(Word::Name(rest[..length].to_ascii_lowercase()));
                length
            }
        };
        rest = rest[length..].trim_start();
    }
    Some(words)
}

const fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// Bytes of the quoted stretch at the start, both quotes included; a doubled quote stands for itself.
fn quoted_length(text: &str) -> Option<usize> {
    let quote = text.chars().next()?;
    let mut from = 1;
    loop {
        let at = from + text.get(from..)?.find(quote)?;
        if !text[at + 1..].starts_with(quote) {
            return Some(at + 1);
        }
        from = at + 2;
    }
}

/// Where the first `;` stands that is not in quotes, or the end.
fn statement_end(text: &str) -> usize {
    let mut at = 0;
    while let Some(character) = text[at..].chars().next() {
        at += match character {
            ';' => return at,
            '"' | '\'' => match quoted_length(&text[at..]) {
                Some(length) => length,
                None => return text.len(),
            },
            _ => character.len_utf8(),
        };
    }
    text.len()
}

#[cfg(test)]
mod tests;
