//! The body of a start-up packet: names and values, each ended by a zero byte.

use super::{MAX_STARTUP_PARAMETERS, PROTOCOL_MAJOR, Replication, Startup, StartupError};

/// Names that begin so are options of the protocol, not parameters of the session.
const PROTOCOL_OPTION_PREFIX: &str = "_pq_.";

pub(super) fn startup(version: u32, body: &[u8]) -> Result<Startup, StartupError> {
    let [major, minor] = [(version >> 16) as u16, (version & 0xffff) as u16];
    if major != PROTOCOL_MAJOR {
        return Err(StartupError::Version { major, minor });
    }
    let mut startup = Startup {
        protocol_major: major,
        protocol_minor: minor,
        user: String::new(),
        database: String::new(),
        replication: Replication::No,
        parameters: Vec::new(),
        unknown_options: Vec::new(),
    };
    let mut rest = body;
    let mut count = 0;
    loop {
        let name = until_zero(&mut rest)?;
        if name.is_empty() {
            break;
        }
        count += 1;
        if count > MAX_STARTUP_PARAMETERS {
            return Err(StartupError::TooManyParameters);
        }
        let value = until_zero(&mut rest)?;
        add(&mut startup, name, value)?;
    }
    if !rest.is_empty() {
        return Err(StartupError::Layout);
    }
    if startup.user.is_empty() {
        return Err(StartupError::NoUser);
    }
    if startup.database.is_empty() {
        startup.database.clone_from(&startup.user);
    }
    Ok(startup)
}

fn until_zero<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], StartupError> {
    let end = rest.iter().position(|byte| *byte == 0).ok_or(StartupError::Layout)?;
    let (text, after) = rest.split_at(end);
    *rest = after.get(1..).unwrap_or_default();
    Ok(text)
}

fn add(startup: &mut Startup, name: &[u8], value: &[u8]) -> Result<(), StartupError> {
    let not_utf8 = |_| StartupError::NotUtf8 { name: String::from_utf8_lossy(name).into_owned() };
    let name_text = std::str::from_utf8(name).map_err(not_utf8)?;
    let value = match std::str::from_utf8(value) {
        Ok(value) => value.to_owned(),
        // Programs put anything there; PostgreSQL replaces what it cannot show.
        Err(_) if name_text == "application_name" => String::from_utf8_lossy(value).into_owned(),
        Err(error) => return Err(not_utf8(error)),
    };
    match name_text {
        "user" => startup.user = value,
        "database" => startup.database = value,
        "replication" => startup.replication = replication(value)?,
        option if option.starts_with(PROTOCOL_OPTION_PREFIX) => {
            if !startup.unknown_options.iter().any(|known| known == option) {
                startup.unknown_options.push(option.to_owned());
            }
        }
        other => match startup.parameters.iter_mut().find(|(known, _)| known == other) {
            Some((_, earlier)) => *earlier = value,
            None => startup.parameters.push((other.to_owned(), value)),
        },
    }
    Ok(())
}

/// PostgreSQL takes `database` or any spelling of a truth value, unique prefixes included.
fn replication(value: String) -> Result<Replication, StartupError> {
    let lower = value.to_ascii_lowercase();
    let prefix_of = |word: &str, least: usize| lower.len() >= least && word.starts_with(&lower);
    if value == "database" {
        Ok(Replication::Logical)
    } else if prefix_of("true", 1) || prefix_of("yes", 1) || prefix_of("on", 2) || lower == "1" {
        Ok(Replication::Physical)
    } else if prefix_of("false", 1) || prefix_of("no", 1) || prefix_of("off", 2) || lower == "0" {
        Ok(Replication::No)
    } else {
        Err(StartupError::Replication { value })
    }
}
