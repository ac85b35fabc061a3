//! Start-up parameters follow their client from server to server.

use drill::wire::{ConnectOptions, Connection};

use crate::support::{House, PATIENCE, code, connect, value, within};

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parameter_that_cannot_be_kept_is_refused_by_name() {
    let house = House::start(|setup| setup);
    let options = house.options().parameter("search_path", "elsewhere");
    let refused = within(PATIENCE, "a login", Connection::connect(&options)).await.unwrap_err();
    assert_eq!(code(&refused), "08P01");
    assert_eq!(refused.server().unwrap().message, "unsupported startup parameter: search_path");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parameter_in_ignore_startup_parameters_is_dropped() {
    let house =
        House::start(|setup| setup.setting("ignore_startup_parameters", "extra_float_digits, search_path"));
    let options = house.options().parameter("search_path", "elsewhere").parameter("Extra_Float_Digits", "3");
    let mut client = connect(&options).await;
    assert_ne!(value(&mut client, "show search_path").await, "elsewhere");
}
