//! Start-up parameters follow their client from server to server.

use drill::postgres::{DATABASE, PostgresOptions, PrivatePostgres, USER};
use drill::wire::{Address, ConnectOptions, Connection};

use crate::support::{House, PATIENCE, code, connect, holdfast, value, within};

/// Two sets of values, and what the server shows for each.
const SETS: [[(&str, &str); 4]; 2] = [
    [
        ("application_name", "first"),
        ("client_encoding", "UTF8"),
        ("DateStyle", "ISO, DMY"),
        ("TimeZone", "Europe/Berlin"),
    ],
    [
        ("application_name", "o'hara"),
        ("client_encoding", "LATIN1"),
        ("DateStyle", "German"),
        ("TimeZone", "America/New_York"),
    ],
];
const SHOWN: [&str; 2] = ["first/UTF8/ISO, DMY/Europe/Berlin", "o'hara/LATIN1/German, DMY/America/New_York"];
const ASK: &str = "select concat_ws('/', current_setting('application_name'), current_setting('client_encoding'), \
     current_setting('DateStyle'), current_setting('TimeZone'))";

fn with_set(mut options: ConnectOptions, set: &[(&str, &str)]) -> ConnectOptions {
    for (name, value) in set {
        options = options.parameter(name, value);
    }
    options
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_clients_of_one_server_each_see_their_own_values_after_every_switch() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let mut clients = Vec::new();
    for set in &SETS {
        clients.push(connect(&with_set(house.options(), set)).await);
    }
    let mut plain = house.client().await;
    let before = value(&mut plain, ASK).await;
    for _ in 0..5 {
        for (client, shown) in clients.iter_mut().zip(SHOWN) {
            assert_eq!(value(client, ASK).await, shown);
            let extended = within(PATIENCE, ASK, client.extended_query(ASK, &[])).await.unwrap();
            assert_eq!(extended.value(), Some(shown));
        }
        assert_eq!(value(&mut plain, ASK).await, before);
    }
    assert_eq!(house.backend_pids().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_is_told_its_own_values_at_login() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    for _ in 0..2 {
        let client = connect(&with_set(house.options(), &SETS[0])).await;
        assert_eq!(client.parameter("application_name"), Some("first"));
        assert_eq!(client.parameter("TimeZone"), Some("Europe/Berlin"));
        assert!(
            client.parameter("server_version").is_some_and(|version| version.starts_with(char::is_numeric))
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_set_later_stays_with_its_client() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let (mut one, mut two) = (house.client().await, house.client().await);
    value(&mut one, "set TimeZone to 'Asia/Tokyo'").await;
    assert_eq!(one.parameter("TimeZone"), Some("Asia/Tokyo"));
    let other = value(&mut two, "show TimeZone").await;
    assert_ne!(other, "Asia/Tokyo");
    assert_eq!(value(&mut one, "show TimeZone").await, "Asia/Tokyo");
    assert_eq!(value(&mut two, "show TimeZone").await, other);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_that_is_not_ascii_reaches_a_server_that_was_left_in_another_encoding() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let latin = house.options().parameter("client_encoding", "LATIN1");
    let mut latin = within(PATIENCE, "a login", Connection::connect(&latin)).await.unwrap();
    let unicode = house.options().parameter("options", "-c app.tenant=caf\u{e9}\\\\");
    let mut unicode = within(PATIENCE, "a login", Connection::connect(&unicode)).await.unwrap();
    for _ in 0..2 {
        assert_eq!(value(&mut latin, "show client_encoding").await, "LATIN1");
        assert_eq!(value(&mut unicode, "show app.tenant").await, "caf\u{e9}\\");
        assert_eq!(value(&mut unicode, "show client_encoding").await, "UTF8");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_that_the_server_refuses_is_told_and_harms_nobody_else() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let mut other = house.client().await;
    let options = house.options().parameter("TimeZone", "Middle/Earth");
    // PostgreSQL itself refuses it at login; here it shows with the first query at the latest.
    let told = match within(PATIENCE, "a login", Connection::connect(&options)).await {
        Err(error) => error.server().unwrap().clone(),
        Ok(mut client) => {
            let reply = within(PATIENCE, "an error", client.query("select 1")).await;
            let error = reply.and_then(drill::wire::Reply::into_result).expect_err("the value is impossible");
            error.server().unwrap().clone()
        }
    };
    assert_eq!(told.code, "22023", "{told}");
    assert_eq!(value(&mut other, "select 1").await, "1");
}

/// search_path, extra_float_digits and `options` were refused or dropped.
/// pgbouncer #89, #482, #493, #875, #1176; neon #6291
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_parameter_is_kept_for_its_client_in_options_or_by_name() {
    const ASK: &str = "select concat_ws('/', current_setting('search_path'), current_setting('statement_timeout'), \
         current_setting('extra_float_digits'), current_setting('geqo'), current_setting('app.tenant', true), \
         current_setting('role'))";
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let mut direct = house.direct().await;
    let own = value(&mut direct, ASK).await;
    let first = house.options().parameter(
        "options",
        r#"-c search_path=a,\"B\ c\" --statement-timeout=5s -cgeqo=off -c app.tenant=o'hara\\x"#,
    );
    let second = house
        .options()
        .parameter("options", "-c search_path=elsewhere")
        .parameter("Search_Path", "pg_catalog, pg_temp")
        .parameter("extra_float_digits", "-3")
        .parameter("app.tenant", "2")
        .parameter("role", USER);
    let mut expected = Vec::new();
    let mut clients = Vec::new();
    for options in [&first, &second] {
        // PostgreSQL says what it makes of them.
        let straight =
            ConnectOptions { address: Address::Tcp(house.postgres.tcp_address()), ..options.clone() };
        expected.push(value(&mut connect(&straight).await, ASK).await);
        clients.push(connect(options).await);
    }
    assert_eq!(
        expected[0],
        format!(r#"a, "B c"/5s/{}/off/o'hara\x/none"#, own.split('/').nth(2).unwrap()).replace("a, ", "a,")
    );
    let mut plain = house.client().await;
    for _ in 0..3 {
        for (client, expected) in clients.iter_mut().zip(&expected) {
            assert_eq!(&value(client, ASK).await, expected);
            let extended = within(PATIENCE, ASK, client.extended_query(ASK, &[])).await.unwrap();
            assert_eq!(extended.value(), Some(expected.as_str()));
        }
        // A parameter that was never there before is empty now, as after any RESET of it.
        assert_eq!(value(&mut plain, ASK).await.replace("//", "/"), own);
    }
    assert_eq!(house.postgres.backends().unwrap().iter().filter(|backend| backend.user == USER).count(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_kept_is_refused_by_name() {
    let house = House::start(|setup| setup);
    const SWITCHES: &str =
        "unsupported options startup parameter: only '-c config=val' and '--config=val' are allowed";
    for (name, value, text) in [
        ("options", "-c log_connections=on", "unsupported startup parameter in options: log_connections"),
        ("options", "-c a;b=1", "unsupported startup parameter in options: a;b"),
        ("options", "-d 5", SWITCHES),
        ("options", "-c geqo", SWITCHES),
        ("Post_Auth_Delay", "1", "unsupported startup parameter: Post_Auth_Delay"),
        ("a b", "1", "unsupported startup parameter: a b"),
    ] {
        let options = house.options().parameter(name, value);
        let refused = within(PATIENCE, "a login", Connection::connect(&options)).await.unwrap_err();
        assert_eq!(code(&refused), "08P01");
        assert_eq!(refused.server().unwrap().message, text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_only_the_server_knows_to_be_wrong_is_told_in_its_words() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    for (name, value, code) in [("max_connections", "5", "55P02"), ("no_such_parameter", "5", "42704")] {
        let mut client = connect(&house.options().parameter(name, value)).await;
        let told = within(PATIENCE, "an error", client.query("select 1")).await;
        let told = told.and_then(drill::wire::Reply::into_result).expect_err("it cannot be set");
        assert_eq!(told.server().unwrap().code, code, "{told}");
    }
    assert_eq!(value(&mut house.client().await, "select 1").await, "1");
}

/// After `DISCARD ALL` a server has its own values again: the next client with the same wishes has to get them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_are_set_again_on_a_server_that_was_cleaned() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let options = house.options().parameter("options", "-c statement_timeout=7s -c application_name=x");
    let ask = "select current_setting('statement_timeout') || current_setting('application_name')";
    for _ in 0..3 {
        let mut leaver = connect(&options).await;
        assert_eq!(value(&mut leaver, ask).await, "7sx");
        value(&mut leaver, "begin").await;
        leaver.abort().unwrap();
        house.wait_pool("the server is clean again", |pool| pool["sv_idle"] == "1").await;
    }
    assert_eq!(value(&mut house.client().await, "show statement_timeout").await, "0");
    assert_eq!(house.backend_pids().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_values_of_a_database_line_and_its_connect_query_are_what_a_reset_goes_back_to() {
    let postgres = PrivatePostgres::start(PostgresOptions::default()).unwrap();
    let house = House::build_on(&holdfast(), postgres, false, |setup, postgres| {
        setup.setting("default_pool_size", "1").setting("application_name_add_host", "1").database(&format!(
            "{DATABASE} = host=127.0.0.1 port={} timezone=Asia/Tokyo datestyle=German client_encoding=LATIN1 \
             connect_query='set statement_timeout to 9000'",
            postgres.tcp_address().port()
        ))
    });
    let ask = "select concat_ws('/', current_setting('TimeZone'), current_setting('DateStyle'), \
         current_setting('client_encoding'), current_setting('statement_timeout'))";
    let mut plain = house.client().await;
    assert_eq!(plain.parameter("TimeZone"), Some("Asia/Tokyo"));
    let own = house.options().parameter("options", "-c statement_timeout=1min").parameter("TimeZone", "UTC");
    let mut other = connect(&own.parameter("application_name", "me")).await;
    for _ in 0..2 {
        assert_eq!(value(&mut plain, ask).await, "Asia/Tokyo/German, DMY/LATIN1/9s");
        assert_eq!(value(&mut other, ask).await, "UTC/German, DMY/LATIN1/1min");
    }
    let name = value(&mut other, "show application_name").await;
    assert!(name.starts_with("me - 127.0.0.1:"), "{name}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parameter_in_ignore_startup_parameters_is_dropped() {
    let house =
        House::start(|setup| setup.setting("ignore_startup_parameters", "extra_float_digits, search_path"));
    let options = house.options().parameter("search_path", "elsewhere").parameter("Extra_Float_Digits", "3");
    let mut client = connect(&options).await;
    assert_ne!(value(&mut client, "show search_path").await, "elsewhere");
}
