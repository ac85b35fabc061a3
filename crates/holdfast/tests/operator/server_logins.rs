//! How the pooler proves who it is to the database.

use drill::postgres::{DATABASE, PostgresOptions, PrivatePostgres};
use drill::wire::{ConnectOptions, Connection, Error};

use crate::support::{House, PATIENCE, code, holdfast, value, within};

const PASSWORD: &str = "behind the pooler";

/// One role for each method of `pg_hba.conf`; nobody gets in without a password.
fn strict_postgres() -> PrivatePostgres {
    let options = PostgresOptions::default()
        .hba_line("host all mona 127.0.0.1/32 md5")
        .hba_line("host all sara 127.0.0.1/32 scram-sha-256")
        .hba_line("host all clara 127.0.0.1/32 password");
    let postgres = PrivatePostgres::start(options).unwrap();
    let sql = format!(
        "set password_encryption = 'md5'; create role mona login password '{PASSWORD}'; \
         set password_encryption = 'scram-sha-256'; create role sara login password '{PASSWORD}'; \
         create role clara login password '{PASSWORD}'"
    );
    postgres.admin(&sql).unwrap();
    postgres
}

fn stored(postgres: &PrivatePostgres, role: &str) -> String {
    let sql = format!("select rolpassword from pg_authid where rolname = '{role}'");
    postgres.admin(&sql).unwrap()[0][0].clone().unwrap()
}

async fn log_in(options: &ConnectOptions) -> Result<Connection, Error> {
    within(PATIENCE, "a login", Connection::connect(options)).await
}

async fn assert_served(house: &House, user: &str, password: Option<&str>) {
    let mut options = house.pooler.connect_options(user, DATABASE);
    options.password = password.map(str::to_owned);
    let mut client =
        log_in(&options).await.unwrap_or_else(|error| panic!("{user}: {error}\n{}", house.pooler.log()));
    assert_eq!(value(&mut client, "select current_user").await, user);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_password_of_the_auth_file_answers_md5_scram_and_clear_text() {
    let house = House::build_on(&holdfast(), strict_postgres(), false, |setup, _| {
        setup.user("mona", PASSWORD).user("sara", PASSWORD).user("clara", PASSWORD)
    });
    for user in ["mona", "sara", "clara"] {
        assert_served(&house, user, None).await;
    }
    assert!(!house.pooler.log().contains(PASSWORD));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_md5_secret_of_the_auth_file_answers_md5() {
    let house = House::build_on(&holdfast(), strict_postgres(), false, |setup, postgres| {
        setup.user("mona", &stored(postgres, "mona"))
    });
    assert_served(&house, "mona", None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_line_of_a_database_names_user_and_password() {
    let house = House::build_on(&holdfast(), strict_postgres(), false, |setup, postgres| {
        let target = format!("host=127.0.0.1 port={} dbname=bench", postgres.port());
        setup.database(&format!("forced = {target} user=sara password='{PASSWORD}'"))
    });
    let mut client = log_in(&house.pooler.connect_options("bench", "forced")).await.unwrap();
    assert_eq!(value(&mut client, "select current_user || '@' || current_database()").await, "sara@bench");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scram_passes_through_where_both_sides_keep_the_same_verifier() {
    let house = House::build_on(&holdfast(), strict_postgres(), false, |setup, postgres| {
        setup
            .setting("auth_type", "scram-sha-256")
            .setting("default_pool_size", "3")
            .user("sara", &stored(postgres, "sara"))
    });
    assert_served(&house, "sara", Some(PASSWORD)).await;
    // Several servers, opened at different times, all with what the first login taught.
    let options = house.pooler.connect_options("sara", DATABASE).password(PASSWORD);
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = log_in(&options).await.unwrap();
        value(&mut client, "begin").await;
        clients.push(client);
    }
    for client in &mut clients {
        assert_eq!(value(client, "select current_user").await, "sara");
    }
    assert_eq!(code(&log_in(&options.clone().password("wrong")).await.unwrap_err()), "28P01");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_verifier_that_is_not_the_servers_is_refused_by_the_server() {
    let house = House::build_on(&holdfast(), strict_postgres(), false, |setup, postgres| {
        // Another salt, and so another verifier of the same password.
        let before = stored(postgres, "sara");
        postgres.admin(&format!("alter role sara password '{PASSWORD}'")).unwrap();
        setup.setting("auth_type", "scram-sha-256").user("sara", &before)
    });
    let options = house.pooler.connect_options("sara", DATABASE).password(PASSWORD);
    let refused = log_in(&options).await.unwrap_err();
    assert_eq!(code(&refused), "28P01", "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_md5_secret_cannot_answer_scram_and_that_is_said() {
    let house = House::build_on(&holdfast(), strict_postgres(), false, |setup, _| {
        setup.user("sara", "md50123456789abcdef0123456789abcdef")
    });
    let refused = log_in(&house.pooler.connect_options("sara", DATABASE)).await.unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("no secret that the server accepts"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_are_reached_over_their_unix_socket() {
    let house = House::build_on(&holdfast(), strict_postgres(), false, |setup, postgres| {
        let folder = postgres.socket_dir().display().to_string();
        setup.database(&format!("local = host={folder} port={} dbname=bench", postgres.port()))
    });
    let mut client = log_in(&house.pooler.connect_options("bench", "local")).await.unwrap();
    assert_eq!(value(&mut client, "select coalesce(inet_client_addr()::text, 'unix')").await, "unix");
}
