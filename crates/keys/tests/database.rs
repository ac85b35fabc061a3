//! The shared reader on a real database: what one event costs, however many clients it concerns.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use drill::postgres::{ADMIN_USER, DATABASE, PostgresOptions, PrivatePostgres};
use keys::{INTERVAL, Reader};
use membership::lease::Cause;
use store::catalogue::Writer;
use store::migrate::{Passwords, migrate};
use store::pool::{Pool, PoolOptions};
use store::{NewAccount, Store};
use tokio::time::{Instant, sleep};
use trust::{AccountId, ClientId, NetworkId};

const CLIENTS: usize = 1_000;
const PATIENCE: Duration = Duration::from_secs(60);

fn store(postgres: &PrivatePostgres, writer: Writer) -> Store {
    let path = format!("postgresql://{}@{}/{DATABASE}", writer.database_role(), postgres.tcp_address());
    Store::new(Pool::new(path.parse().unwrap(), PoolOptions::default()).unwrap(), NetworkId([7; 32]))
}

/// How often the database was asked what has changed.
fn reads(postgres: &PrivatePostgres) -> usize {
    postgres.log().matches("changed_clients(n.network").count()
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// One change used to be a check for every connection of the network.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_for_a_thousand_clients_costs_one_read() {
    let options = PostgresOptions::default().setting("log_statement", "all");
    let postgres = PrivatePostgres::start(options).unwrap();
    let direct = format!(
        "host={} port={} user={ADMIN_USER} dbname={DATABASE}",
        postgres.socket_dir().display(),
        postgres.port()
    );
    let passwords = Passwords { api: "a".into(), relay: "r".into(), worker: "w".into() };
    migrate(&direct.parse().unwrap(), Some(&passwords)).await.unwrap();
    let (api, relay) = (store(&postgres, Writer::Api), store(&postgres, Writer::Relay));
    api.ensure_network().await.unwrap();
    let account = AccountId::random();
    let new = NewAccount { account, name: "many".into(), password: String::new(), operator: false };
    api.create_account(new).await.unwrap();
    let insert = format!(
        "insert into client (client, network, request, role, identity, thumbprint, account, label, software)
         select gen_random_uuid(), (select network from network), gen_random_uuid(), 1,
            decode(repeat(lpad(to_hex(n), 8, '0'), 16), 'hex'), decode(repeat(lpad(to_hex(n), 8, '0'), 8), 'hex'),
            '{}', '', '' from generate_series(1, {CLIENTS}) n",
        account.0
    );
    postgres.admin(&insert).unwrap();
    let clients: Vec<ClientId> = postgres
        .admin("select client from client")
        .unwrap()
        .into_iter()
        .map(|row| row[0].as_ref().unwrap().parse().unwrap())
        .collect();

    let reader = Reader::open(relay, NetworkId([7; 32]), None).unwrap();
    let book = reader.book();
    tokio::spawn(reader.run());
    until("the first answer", || book.known().answered_at_ms.is_some()).await;
    until("a read by cursor", || reads(&postgres) > 0).await;
    let refused = |cause: Option<Cause>| {
        let known = book.known();
        clients.iter().filter(|client| known.refusal(**client, 0) == cause).count()
    };
    assert_eq!(refused(None), CLIENTS);
    for (is_disabled, cause) in [(true, Some(Cause::AccountDisabled)), (false, None)] {
        let (before, begun) = (reads(&postgres), Instant::now());
        api.set_account_disabled(account, is_disabled).await.unwrap();
        until("all have heard", || refused(cause) == CLIENTS).await;
        let most = 2 + begun.elapsed().as_secs() as usize / 6;
        let spent = reads(&postgres) - before;
        assert!((1..=most).contains(&spent), "{spent} reads for {CLIENTS} clients");
        assert!(begun.elapsed() < 3 * INTERVAL, "{:?}", begun.elapsed());
    }
}
