//! Secrets: long ones, strange ones, and more than one.

use drill::peer::PoolerSetup;
use drill::postgres::{DATABASE, PostgresOptions, PrivatePostgres};
use drill::wire::{ConnectOptions, Connection, Error};

use crate::support::{House, PATIENCE, code, connect, holdfast, value, within};

/// Secrets were cut off at the size of a buffer, or crashed the pooler.
/// pgagroal #942; pgbouncer #362, #430, #619, #1215
#[tokio::test(flavor = "multi_thread")]
async fn long_secrets_work_in_both_directions() {
    const LENGTHS: [usize; 7] = [64, 255, 256, 1023, 1024, 2048, 4096];
    for auth_type in ["scram-sha-256", "md5", "plain"] {
        let methods = [("scram-sha-256", "scram"), ("md5", "md5"), ("password", "clear")];
        let mut options = PostgresOptions::default();
        for (method, name) in methods {
            let users: Vec<String> = LENGTHS.iter().map(|length| format!("{name}{length}")).collect();
            options = options.hba_line(&format!("host all {} 127.0.0.1/32 {method}", users.join(",")));
        }
        let postgres = PrivatePostgres::start(options).unwrap();
        let mut users = Vec::new();
        for (method, name) in methods {
            let encryption = if method == "md5" { "md5" } else { "scram-sha-256" };
            for length in LENGTHS {
                let (user, secret) = (format!("{name}{length}"), secret(length));
                postgres
                    .admin(&format!(
                        "set password_encryption = '{encryption}'; create role {user} login password '{secret}'"
                    ))
                    .unwrap();
                users.push((user, secret));
            }
        }
        let house = House::build_on(&holdfast(), postgres, false, |mut setup, _| {
            for (user, secret) in &users {
                setup = setup.user(user, secret);
            }
            setup.setting("auth_type", auth_type)
        });
        for (user, secret) in &users {
            let mut client = log_in(&house, user, secret)
                .await
                .unwrap_or_else(|error| panic!("{auth_type}, {user}: {error}\n{}", house.pooler.log()));
            assert_eq!(value(&mut client, "select current_user").await, *user);
            // One letter less, or another last letter, is another secret.
            for wrong in [&secret[1..], &format!("{}!", &secret[..secret.len() - 1])] {
                let refused = log_in(&house, user, wrong).await.unwrap_err();
                assert_eq!(code(&refused), "28P01", "{auth_type}, {user}: {refused}");
            }
        }
    }
}

/// What a role's password is, what its client says, and whether that is the same (RFC 4013; PostgreSQL takes what it
/// forbids as it is).
const PREPARED: [(&str, &str, bool); 11] = [
    // A space that does not break, a hyphen that is not seen, an accent of its own, a Roman numeral, a ligature.
    ("a\u{a0}b", "a b", true),
    ("a\u{ad}b", "ab", true),
    ("e\u{301}", "\u{e9}", true),
    ("\u{e9}", "e\u{301}", true),
    ("\u{2168}", "IX", true),
    ("\u{fb01}sh", "fish", true),
    (" spaces ", " spaces ", true),
    (" spaces ", "spaces", false),
    // A control character, and two directions of writing: forbidden.
    ("bell\u{7}", "bell\u{7}", true),
    ("bell\u{7}", "bell", false),
    ("\u{5d0}a", "\u{5d0}a", true),
];

/// SASLprep was missing, or done in part: who can log in to PostgreSQL could not log in to the pooler, or the pooler not
/// to PostgreSQL.
/// pgagroal #760; sqlx #4196; node-postgres PR #3669
#[tokio::test(flavor = "multi_thread")]
async fn passwords_are_prepared_as_postgresql_does() {
    // By the text, which the pooler prepares on both sides, and by the verifier that PostgreSQL has made.
    for by_verifier in [false, true] {
        let users: Vec<String> = (0..PREPARED.len()).map(|number| format!("prepared{number}")).collect();
        let line = format!("host all {} 127.0.0.1/32 scram-sha-256", users.join(","));
        let postgres = PrivatePostgres::start(PostgresOptions::default().hba_line(&line)).unwrap();
        for (user, (stored, ..)) in users.iter().zip(PREPARED) {
            postgres.admin(&format!("create role {user} login password '{stored}'")).unwrap();
        }
        let house = House::build_on(&holdfast(), postgres, false, |mut setup, postgres| {
            for (user, (stored, ..)) in users.iter().zip(PREPARED) {
                let verifier = || verifier(postgres, user);
                setup = setup.user(user, &if by_verifier { verifier() } else { stored.to_owned() });
            }
            setup.setting("auth_type", "scram-sha-256")
        });
        for (user, (stored, said, same)) in users.iter().zip(PREPARED) {
            let direct =
                ConnectOptions::new(house.postgres.tcp_address().into(), user, DATABASE).password(said);
            let direct = within(PATIENCE, "a login", Connection::connect(&direct)).await;
            assert_eq!(direct.is_ok(), same, "PostgreSQL: {said:?} for {stored:?}");
            let pooled = log_in(&house, user, said).await;
            assert_eq!(pooled.is_ok(), same, "{said:?} for {stored:?}: {:?}", pooled.err());
            if let Ok(mut client) = pooled {
                assert_eq!(value(&mut client, "select current_user").await, *user);
            }
        }
    }
}

/// A verifier for clients and another secret for the server: the wrong one of them was used, or neither.
/// pgbouncer #944, #1610, #508, #774
#[tokio::test(flavor = "multi_thread")]
async fn clients_and_servers_each_get_the_secret_that_is_theirs() {
    let options = PostgresOptions::default().hba_line("host all sara 127.0.0.1/32 scram-sha-256");
    let postgres = PrivatePostgres::start(options).unwrap();
    postgres.admin("create role sara login password 'in front'").unwrap();
    let in_front = verifier(&postgres, "sara");
    postgres.admin("alter role sara password 'behind'").unwrap();
    let house = House::build_on(&holdfast(), postgres, false, |setup, postgres| {
        let target = format!("host=127.0.0.1 port={} dbname=bench", postgres.port());
        setup
            .setting("auth_type", "scram-sha-256")
            .user("sara", &in_front)
            .database(&format!("told = {target} user=sara password=behind"))
            .database(&format!("password_alone = {target} password=behind"))
            .database(&format!("untold = {target}"))
    });
    for database in ["told", "password_alone"] {
        let options = house.pooler.connect_options("sara", database);
        let mut client =
            within(PATIENCE, "a login", Connection::connect(&options.clone().password("in front")))
                .await
                .unwrap_or_else(|error| panic!("{database}: {error}\n{}", house.pooler.log()));
        assert_eq!(value(&mut client, "select current_user").await, "sara");
        let refused = Connection::connect(&options.password("behind")).await.unwrap_err();
        assert_eq!(code(&refused), "28P01", "{database}: {refused}");
    }
    let options = house.pooler.connect_options("sara", "untold").password("in front");
    let refused = within(PATIENCE, "a refusal", Connection::connect(&options)).await.unwrap_err();
    assert_eq!(code(&refused), "28P01", "{refused}");
    let log = house.pooler.log();
    assert!(log.contains("password"), "the log names the key that is missing: {log}");
    assert!(!log.contains("in front") && !log.contains("behind"), "{log}");
}

/// Logins worked after a start, and no longer after a RELOAD.
/// pgbouncer #297, #1084, #280
#[tokio::test(flavor = "multi_thread")]
async fn logins_work_after_each_reload() {
    let options = PostgresOptions::default().hba_line("host all sara 127.0.0.1/32 scram-sha-256");
    let postgres = PrivatePostgres::start(options).unwrap();
    postgres.admin("create role sara login password 'secret'").unwrap();
    for by_verifier in [false, true] {
        let secret = if by_verifier { verifier(&postgres, "sara") } else { "secret".to_owned() };
        let setup = PoolerSetup::new(postgres.tcp_address());
        let setup =
            setup.setting("auth_type", "scram-sha-256").user("sara", &secret).user("postgres", "admin");
        let pooler = holdfast().start(&setup).unwrap();
        let admin = pooler.connect_options("postgres", "pgbouncer").password("admin");
        let options = pooler.connect_options("sara", DATABASE).password("secret");
        let mut stays = connect(&options).await;
        let mut console = connect(&admin).await;
        for turn in 0..10 {
            within(PATIENCE, "RELOAD", console.query("RELOAD")).await.unwrap().into_result().unwrap();
            let mut client = connect(&options).await;
            assert_eq!(value(&mut client, "select current_user").await, "sara", "after reload {turn}");
            assert_eq!(value(&mut stays, "select current_user").await, "sara", "after reload {turn}");
            client.terminate().await.unwrap();
            let refused = Connection::connect(&options.clone().password("wrong")).await.unwrap_err();
            assert_eq!(code(&refused), "28P01", "after reload {turn}: {refused}");
            connect(&admin).await.terminate().await.unwrap();
        }
    }
}

fn verifier(postgres: &PrivatePostgres, role: &str) -> String {
    let sql = format!("select rolpassword from pg_authid where rolname = '{role}'");
    postgres.admin(&sql).unwrap()[0][0].clone().unwrap()
}

async fn log_in(house: &House, user: &str, password: &str) -> Result<Connection, Error> {
    let options = house.pooler.connect_options(user, DATABASE).password(password);
    within(PATIENCE, "a login", Connection::connect(&options)).await
}

/// Different at every place.
fn secret(length: usize) -> String {
    (0..length).map(|at| char::from(b'a' + u8::try_from((at * 7 + at / 26) % 26).unwrap())).collect()
}
