//! How to log in: a URL that holds no password unless it comes from where no process list shows it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Longest password file that is read.
const MAX_PASSWORD_FILE_BYTES: u64 = 1 << 20;

/// A database that cannot be reached as it was named.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The URL.
    #[error("the database's URL cannot be read: {0}")]
    Url(#[from] tokio_postgres::Error),
    /// A password where every user of the machine can read it.
    #[error(
        "a password on the command line stands in process lists; give it by PGPASSWORD, by a file (PGPASSFILE, ~/.pgpass), or \
         the whole URL by DATABASE_URL"
    )]
    PasswordShown,
}

/// What to log in with. `is_shown`: the URL stands on a command line. A password that it lacks comes from PGPASSWORD, or from
/// the password file (PostgreSQL's documentation, "The Password File").
///
/// # Errors
/// [`DatabaseError`].
pub fn connect_config(
    url: &str,
    is_shown: bool,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Config, DatabaseError> {
    let mut config: Config = url.parse()?;
    if is_shown && config.get_password().is_some() {
        return Err(DatabaseError::PasswordShown);
    }
    if config.get_password().is_none() {
        let from_file = || {
            let file = environment("PGPASSFILE").map(PathBuf::from);
            let file = file.or_else(|| environment("HOME").map(|home| Path::new(&home).join(".pgpass")))?;
            password_of(&read_private(&file)?, &config)
        };
        if let Some(password) = environment("PGPASSWORD").or_else(from_file) {
            config.password(password);
        }
    }
    if config.get_application_name().is_none() {
        config.application_name("holdfast db migrate");
    }
    Ok(config)
}

/// As libpq, one that others may read is not used.
fn read_private(file: &Path) -> Option<String> {
    let about = fs::metadata(file).ok()?;
    let is_private = about.permissions().mode() & 0o077 == 0;
    (is_private && about.len() <= MAX_PASSWORD_FILE_BYTES).then(|| fs::read_to_string(file).ok())?
}

fn password_of(text: &str, config: &Config) -> Option<String> {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        _ => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let user = config.get_user().unwrap_or_default();
    let wanted = [host.as_str(), &port, config.get_dbname().unwrap_or(user), user];
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let [rest @ .., password] = fields.as_slice() else { return None };
        let fits = rest.len() == 4 && rest.iter().zip(wanted).all(|(has, wants)| has == "*" || has == wants);
        fits.then(|| password.clone())
    })
}

/// Fields with `:` between; `\` takes the next character as it is.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => fields.last_mut().into_iter().for_each(|field| field.extend(characters.next())),
            other => fields.last_mut().into_iter().for_each(|field| field.push(other)),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_on_the_command_line_is_refused_and_in_the_environment_it_is_not() {
        let url = "postgresql://ann:secret@db/app";
        let error = connect_config(url, true, |_| None).unwrap_err();
        assert!(matches!(error, DatabaseError::PasswordShown) && !error.to_string().contains("secret"));
        assert_eq!(connect_config(url, false, |_| None).unwrap().get_password(), Some(&b"secret"[..]));
        let given = connect_config("postgresql://ann@db/app", true, |name| {
            (name == "PGPASSWORD").then(|| "own".to_owned())
        });
        assert_eq!(given.unwrap().get_password(), Some(&b"own"[..]));
    }

    #[test]
    fn the_password_file_is_read_as_libpq_reads_it() {
        let config: Config = "postgresql://ann@db:6543/app".parse().unwrap();
        let text = "# comment\nother:*:*:*:no\ndb:6543:app:bob:no\ndb:*:a\\pp:ann:se\\:c:ret\n*:*:*:*:last";
        assert_eq!(password_of(text, &config).as_deref(), Some("se:c:ret"));
        assert_eq!(password_of("db:1:*:*:no", &config), None);
    }
}
