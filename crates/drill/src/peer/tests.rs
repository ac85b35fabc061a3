use super::*;
use crate::postgres::{DATABASE, PrivatePostgres, USER};
use crate::wire::{self, Connection};

#[test]
fn pgbouncer_answers_through_its_port_or_says_how_to_install_it() {
    let pgbouncer = match Pgbouncer::find(None) {
        Ok(pgbouncer) => pgbouncer,
        Err(error) => return assert!(error.to_string().contains("apt-get install pgbouncer"), "{error}"),
    };
    let server = PrivatePostgres::start_default().unwrap();
    let setup = PoolerSetup::new(server.tcp_address()).setting("default_pool_size", "3");
    let mut peer = pgbouncer.start(&setup).unwrap();
    let rows = wire::block_on(async {
        let mut connection = Connection::connect(&peer.connect_options(USER, DATABASE)).await.unwrap();
        assert_eq!(connection.query("select 5").await.unwrap().value(), Some("5"));
        let mut console = Connection::connect(&peer.connect_options("postgres", "pgbouncer")).await.unwrap();
        console.query("show config").await.unwrap().rows
    })
    .unwrap();
    let size = rows.iter().find(|row| row[0].as_deref() == Some("default_pool_size")).unwrap();
    assert_eq!(size[1].as_deref(), Some("3"));
    peer.signal(Signal::INT).unwrap();
    assert!(peer.wait_end(START_LIMIT).is_some());
}

#[test]
fn a_program_that_ends_at_start_is_an_error_with_its_words() {
    // `sh pooler FILE` finds no script of that name.
    let error =
        Holdfast::new(Path::new("/bin/sh")).unwrap().start(&PoolerSetup::new(([127, 0, 0, 1], 1).into()));
    let text = format!("{:#}", error.unwrap_err());
    assert!(text.contains("ended at start") && text.contains("pooler"), "{text}");
}

#[test]
fn the_generated_file_quotes_users_and_keeps_the_last_setting() {
    let setup = PoolerSetup::new(([127, 0, 0, 1], 5432).into())
        .setting("default_pool_size", "7")
        .database("other = host=127.0.0.1 port=1")
        .user("a\"b", "secret");
    assert!(setup.user_list().contains("\"a\"\"b\" \"secret\"\n"));
    let ini = setup.ini(6432, Path::new("/x/userlist.txt"));
    assert!(ini.contains("default_pool_size = 7\n") && !ini.contains("default_pool_size = 20"));
    assert!(ini.find("other = ").unwrap() < ini.find("* = host=127.0.0.1 port=5432").unwrap());
}

#[test]
fn the_same_settings_in_toml_have_every_database_and_what_is_ours() {
    let setup = PoolerSetup::new(([127, 0, 0, 1], 5432).into())
        .setting("default_pool_size", "7")
        .database("other = host=127.0.0.1 port=1");
    let own = [("overload_policy".to_owned(), "on".to_owned())];
    let text = setup.toml(6432, Path::new("/x/userlist.txt"), &own).unwrap();
    let file: toml::Table = text.parse().unwrap();
    assert_eq!(file["pooler"]["default_pool_size"].as_str(), Some("7"));
    assert_eq!(file["pooler"]["overload_policy"].as_str(), Some("on"));
    assert_eq!(file["databases"]["other"].as_str(), Some("host=127.0.0.1 port=1"));
    assert_eq!(file["databases"]["*"].as_str(), Some("host=127.0.0.1 port=5432"));
    assert!(setup.section("[users]").toml(6432, Path::new("/x"), &[]).is_err());
}
