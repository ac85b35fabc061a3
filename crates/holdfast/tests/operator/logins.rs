//! How clients prove who they are: every `auth_type`, with every kind of stored secret, over TCP and the Unix socket.

use std::path::{Path, PathBuf};

use drill::postgres::{DATABASE, PostgresOptions, PrivatePostgres};
use drill::wire::{Address, ConnectOptions, Connection, Error, ServerError};

use crate::psql::{Way, psql};
use crate::support::{House, PATIENCE, holdfast, value, within};

/// Three users with the same password, stored in plain, as MD5 and as a SCRAM verifier.
const USERS: [&str; 3] = ["alice", "mona", "sara"];
const PASSWORD: &str = "open, Sesame";

struct Logins {
    house: House,
    sockets: tempfile::TempDir,
}

impl Logins {
    /// The database trusts everyone, so that only the pooler decides.
    fn start(auth_type: &str) -> Self {
        let postgres = PrivatePostgres::start(PostgresOptions::default()).unwrap();
        let sql = format!(
            "create role alice login; create role nobody_knows login; \
             set password_encryption = 'md5'; create role mona login password '{PASSWORD}'; \
             set password_encryption = 'scram-sha-256'; create role sara login password '{PASSWORD}'"
        );
        postgres.admin(&sql).unwrap();
        let sockets = tempfile::Builder::new().prefix("hf").tempdir_in("/tmp").unwrap();
        let house = House::build_on(&holdfast(), postgres, false, |setup, postgres| {
            let forced = format!("forced = host=127.0.0.1 port={} dbname=bench user=sara", postgres.port());
            setup
                .database(&forced)
                .setting("auth_type", auth_type)
                .setting("unix_socket_dir", sockets.path().to_str().unwrap())
                .user("alice", PASSWORD)
                .user("mona", &stored(postgres, "mona"))
                .user("sara", &stored(postgres, "sara"))
        });
        Self { house, sockets }
    }

    fn addresses(&self) -> [Address; 2] {
        let socket: PathBuf = self.sockets.path().join(format!(".s.PGSQL.{}", self.house.pooler.port()));
        [Address::Tcp(self.house.pooler.address()), Address::Unix(socket)]
    }

    fn folder(&self) -> &Path {
        self.sockets.path()
    }

    /// Lets `user` in with the password, over both kinds of socket, and as psql.
    async fn assert_let_in(&self, user: &str, password: Option<&str>) {
        for address in self.addresses() {
            let mut client =
                log_in(&address, user, password).await.unwrap_or_else(|error| panic!("{user}: {error}"));
            assert_eq!(value(&mut client, "select current_user").await, user);
        }
        for way in [Way::Tcp, Way::Unix(self.folder())] {
            let seen = psql(&self.house, way, user, DATABASE, password, "select current_user as me");
            assert!(seen.worked, "{user}: {}", seen.stderr);
            assert_eq!(seen.stdout, format!("me\n{user}\n(1 row)\n"));
        }
    }

    /// The refusal, which is the same over both kinds of socket.
    async fn refusal(&self, user: &str, password: Option<&str>) -> ServerError {
        let mut told = Vec::new();
        for address in self.addresses() {
            let error = log_in(&address, user, password).await.expect_err(user);
            told.push(error.server().unwrap_or_else(|| panic!("{user}: {error}")).clone());
        }
        assert_eq!(told[0], told[1]);
        let seen = psql(&self.house, Way::Tcp, user, DATABASE, password, "select 1");
        assert!(!seen.worked && seen.stderr.contains(&told[0].message), "{}", seen.stderr);
        told.swap_remove(0)
    }

    /// A wrong password is refused, and a user that nobody knows looks just like it.
    async fn assert_wrong_and_unknown_look_alike(&self, user: &str) {
        let wrong = self.refusal(user, Some("Sesame, open")).await;
        assert_eq!((wrong.code.as_str(), wrong.is_fatal()), ("28P01", true));
        assert_eq!(wrong.message, format!("password authentication failed for user \"{user}\""));
        let unknown = self.refusal("nobody_knows", Some(PASSWORD)).await;
        assert_eq!(unknown.message, "password authentication failed for user \"nobody_knows\"");
        assert_eq!((unknown.code, unknown.detail, unknown.hint), (wrong.code, wrong.detail, wrong.hint));
    }
}

/// What the database stores for a role.
fn stored(postgres: &PrivatePostgres, role: &str) -> String {
    let sql = format!("select rolpassword from pg_authid where rolname = '{role}'");
    postgres.admin(&sql).unwrap()[0][0].clone().unwrap()
}

async fn log_in(address: &Address, user: &str, password: Option<&str>) -> Result<Connection, Error> {
    let mut options = ConnectOptions::new(address.clone(), user, DATABASE);
    options.password = password.map(str::to_owned);
    within(PATIENCE, "a login", Connection::connect(&options)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trust_lets_known_users_in_without_a_password_and_no_others() {
    let logins = Logins::start("trust");
    for user in USERS {
        logins.assert_let_in(user, None).await;
    }
    let told = logins.refusal("nobody_knows", None).await;
    assert_eq!(told.code, "28000");
    assert!(told.message.contains("no such user \"nobody_knows\""), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_lets_in_whom_no_file_knows_as_the_user_of_the_line() {
    let logins = Logins::start("any");
    for user in ["alice", "whoever"] {
        let options = ConnectOptions::new(logins.addresses()[0].clone(), user, "forced");
        let mut client = within(PATIENCE, "a login", Connection::connect(&options)).await.unwrap();
        assert_eq!(value(&mut client, "select current_user").await, "sara");
        let seen = psql(&logins.house, Way::Tcp, user, "forced", None, "select current_user as me");
        assert_eq!(seen.stdout, "me\nsara\n(1 row)\n", "{}", seen.stderr);
    }
    // Without a user in the line there is nobody to be at the database.
    let told = logins.refusal("alice", None).await;
    assert!(told.message.contains("auth_type=any"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_takes_the_right_password_whatever_is_stored() {
    let logins = Logins::start("plain");
    for user in USERS {
        logins.assert_let_in(user, Some(PASSWORD)).await;
    }
    logins.assert_wrong_and_unknown_look_alike("alice").await;
    logins.assert_wrong_and_unknown_look_alike("sara").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn md5_takes_the_right_password_whatever_is_stored() {
    let logins = Logins::start("md5");
    for user in USERS {
        logins.assert_let_in(user, Some(PASSWORD)).await;
    }
    logins.assert_wrong_and_unknown_look_alike("mona").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scram_takes_plain_passwords_and_verifiers_and_refuses_md5() {
    let logins = Logins::start("scram-sha-256");
    logins.assert_let_in("alice", Some(PASSWORD)).await;
    logins.assert_let_in("sara", Some(PASSWORD)).await;
    logins.assert_wrong_and_unknown_look_alike("alice").await;
    logins.assert_wrong_and_unknown_look_alike("sara").await;
    let told = logins.refusal("mona", Some(PASSWORD)).await;
    assert!(told.code.starts_with("28"), "{told}");
    let counted = logins.house.metric("logins_refused_total").await;
    assert!(counted > 8.0, "{counted}");
    let log = logins.house.pooler.log();
    assert!(!log.contains(PASSWORD) && !log.contains("SCRAM-SHA-256$"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_for_encryption_are_declined_and_the_login_goes_on() {
    use drill::wire::Encryption;
    let logins = Logins::start("scram-sha-256");
    for encryption in [Encryption::Ssl, Encryption::Gss, Encryption::GssThenSsl] {
        for address in logins.addresses() {
            let options =
                ConnectOptions::new(address, "sara", DATABASE).password(PASSWORD).encryption(encryption);
            let mut client = within(PATIENCE, "a login", Connection::connect(&options)).await.unwrap();
            assert_eq!(value(&mut client, "select 1").await, "1");
        }
    }
}
