//! What clients can make the pooler keep.

use drill::wire::{Connection, frame};

use crate::support::{House, PATIENCE, connect, number, reply, value, within};

/// A cache of statements grew with each that was different from all others, such as long lists of `in (…)`.
/// pgdog #854, #1247
#[tokio::test(flavor = "multi_thread")]
async fn many_different_statements_take_bounded_memory() {
    const WARM: usize = 300;
    let different = if is_long() { 100_000 } else { 10_000 };
    const GROWTH: u64 = 16 << 20;
    let house = House::start(|setup| setup.setting("default_pool_size", "2"));
    let mut clients = [house.client().await, house.client().await];
    let list = (0..300).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
    let mut before = 0;
    for turn in 0..different {
        if turn == WARM {
            before = house.resident_bytes();
        }
        let name = format!("s{turn}");
        let request = [
            frame::parse(&name, &format!("select {turn} where 1 in ({list})")),
            frame::bind("", &name, &[]),
            frame::execute("", 0),
            frame::close_statement(&name),
            frame::sync(),
        ];
        let client = &mut clients[turn % 2];
        client.send(&request.concat()).await.unwrap();
        let answer = reply(client).await.unwrap();
        assert_eq!((&*answer.kinds, answer.errors.len()), ("12DC3Z", 0), "{answer:?}");
    }
    let growth = house.resident_bytes().saturating_sub(before);
    assert!(growth < GROWTH, "{} kB for {different} statements that were closed again", growth / 1024);
    // Nor do they fill the servers.
    let held = value(&mut clients[0], "select count(*) from pg_prepared_statements").await;
    assert!(held.parse::<usize>().unwrap() <= 200, "{held} statements at the server");
}

/// Each login with an option that is not known left a buffer behind.
/// pgbouncer #1519
#[tokio::test(flavor = "multi_thread")]
async fn logins_with_unknown_options_leave_nothing_behind() {
    const WARM: usize = 500;
    const GROWTH: u64 = 2 << 20;
    let logins = if is_long() { 50_000 } else { 3_000 };
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let mut before = 0;
    for turn in 0..logins {
        if turn == WARM {
            before = house.resident_bytes();
        }
        let options = house.options().parameter(&format!("_pq_.x{turn}"), &"y".repeat(1_000));
        let client = connect(&options).await;
        assert!(client.negotiated().is_some());
        client.terminate().await.unwrap();
    }
    house.wait_pool("all have left", |pool| number(pool, "cl_active") == 0).await;
    let growth = house.resident_bytes().saturating_sub(before);
    assert!(growth < GROWTH, "{} kB after {logins} logins", growth / 1024);
}

/// One client that prepares without end is told so; it does not fill the memory.
#[tokio::test(flavor = "multi_thread")]
async fn one_client_cannot_keep_statements_without_end() {
    const MOST_BYTES: u64 = 96 << 20;
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let mut client = house.client().await;
    value(&mut client, "select 1").await;
    let before = house.resident_bytes();
    let filler = "x".repeat(30_000);
    let mut refused = None;
    for turn in 0..30_000 {
        if let Err(error) = prepare(&mut client, turn, &filler).await {
            refused = Some(error);
            break;
        }
    }
    let growth = house.resident_bytes().saturating_sub(before);
    assert!(growth < MOST_BYTES, "{} kB for one client", growth / 1024);
    assert_eq!(refused.as_deref(), Some("54000"));
}

async fn prepare(client: &mut Connection, turn: usize, filler: &str) -> Result<(), String> {
    let request =
        [frame::parse(&format!("s{turn}"), &format!("select {turn} /* {filler} */")), frame::sync()];
    client.send(&request.concat()).await.unwrap();
    match within(PATIENCE, "an answer", client.read_reply()).await {
        Ok(answer) => answer.error().map_or(Ok(()), |error| Err(error.code.clone())),
        Err(error) => Err(crate::support::code(&error)),
    }
}

fn is_long() -> bool {
    std::env::var_os("HOLDFAST_LONG").is_some_and(|value| value == "1")
}
