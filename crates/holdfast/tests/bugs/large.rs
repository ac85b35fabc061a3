//! Large results, large requests, and clients that stop in the middle of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use drill::wire::{ConnectOptions, frame};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::support::{House, PATIENCE, number, reply, value, within};

const MEGABYTE: usize = 1 << 20;

/// The most that the pooler may grow by, whatever passes through it.
const GROWTH: u64 = 32 << 20;

/// A result near a gigabyte was cut off after a time, or filled the memory.
/// supavisor #294
#[tokio::test(flavor = "multi_thread")]
async fn large_result_to_a_slow_reader_takes_constant_memory() {
    const ROWS: usize = 1_000_000;
    // 100 MB, and a gigabyte in the long form.
    let is_long = std::env::var_os("HOLDFAST_LONG").is_some_and(|value| value == "1");
    let width = if is_long { 1_000 } else { 90 };
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let mut client = house.client().await;
    value(&mut client, "select 1").await;
    let memory = Memory::watch(&house);
    client
        .send(&frame::query(&format!("select i, repeat('x', {width}) from generate_series(1, {ROWS}) i")))
        .await
        .unwrap();
    let mut rows = 0;
    loop {
        let message = within(PATIENCE, "the next row", client.read_message()).await.unwrap();
        match message.kind {
            b'D' => {
                rows += 1;
                if rows % 100_000 == 1 {
                    // Everything behind it has to stop meanwhile.
                    sleep(Duration::from_millis(300)).await;
                }
            }
            b'Z' => break,
            kind => assert!(kind == b'T' || kind == b'C', "{message:?}"),
        }
    }
    assert_eq!(rows, ROWS);
    memory.assert_bounded("a large result").await;
    assert_eq!(value(&mut client, "select 2").await, "2");
}

/// A parameter of 50 MB passes through, also when its client has to wait for a server first.
#[tokio::test(flavor = "multi_thread")]
async fn large_parameter_takes_constant_memory() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let (mut client, mut holder) = (house.client().await, house.client().await);
    let large = "x".repeat(50 * MEGABYTE);
    let request = Arc::new(frame::extended_query("select length($1::text)", &[Some(&large)]));
    for waits in [false, true] {
        value(&mut holder, if waits { "begin; select 1" } else { "select 1" }).await;
        let memory = Memory::watch(&house);
        let request = request.clone();
        let exchange = tokio::spawn(async move {
            client.send(&request).await.unwrap();
            (reply(&mut client).await.unwrap(), client)
        });
        if waits {
            house.wait_waiting(1).await;
            sleep(Duration::from_millis(500)).await;
            value(&mut holder, "commit").await;
        }
        let (answer, same) = within(PATIENCE, "50 MB", exchange).await.unwrap();
        client = same;
        assert_eq!(answer.value(), Some(&*large.len().to_string()));
        memory.assert_bounded("a parameter of 50 MB").await;
    }
}

/// COPY of 50 MB, as one message and as many.
#[tokio::test(flavor = "multi_thread")]
async fn large_copy_takes_constant_memory() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    house.postgres.admin("create unlogged table t (a text); grant all on t to bench").unwrap();
    let mut client = house.client().await;
    value(&mut client, "select 1").await;
    let line = format!("{}\n", "x".repeat(1023));
    for pieces in [1, 50, 5_000] {
        let lines = 50 * 1024 / pieces;
        let data = frame::copy_data(line.repeat(lines).as_bytes());
        let memory = Memory::watch(&house);
        assert!(client.query("copy t from stdin").await.unwrap().kinds.ends_with('G'));
        for _ in 0..pieces {
            within(PATIENCE, "the next piece", client.send(&data)).await.unwrap();
        }
        client.send(&frame::copy_done()).await.unwrap();
        assert_eq!(reply(&mut client).await.unwrap().tags, [format!("COPY {}", lines * pieces)]);
        memory.assert_bounded(&format!("COPY in {pieces} pieces")).await;
        value(&mut client, "truncate t").await;
    }
}

/// All servers held by clients that have stopped reading a large result: the others are served after
/// `client_write_timeout`, and until then SHOW HOLDERS names who holds them up.
#[tokio::test(flavor = "multi_thread")]
async fn stopped_readers_lose_their_server_to_those_who_wait() {
    const SIZE: usize = 20;
    const LIMIT: Duration = Duration::from_secs(2);
    let house = House::start(|setup| {
        setup.setting("default_pool_size", &SIZE.to_string()).setting("client_write_timeout", "2")
    });
    house.warm(SIZE).await;
    let mut readers = Vec::new();
    for number in 0..SIZE {
        let small = ConnectOptions { receive_buffer_bytes: Some(4096), ..house.options() };
        let mut reader =
            crate::support::connect(&small.parameter("application_name", &format!("reader {number}"))).await;
        reader
            .send(&frame::query("select repeat('x', 1000) from generate_series(1, 1000000)"))
            .await
            .unwrap();
        readers.push(reader);
    }
    let held = |rows: &[crate::support::Row]| {
        rows.iter().filter(|row| row["reason"] == "client does not read its result").count()
    };
    let end = Instant::now() + PATIENCE;
    let rows = loop {
        let rows = house.show("HOLDERS").await;
        if held(&rows) == SIZE {
            break rows;
        }
        assert!(Instant::now() < end, "SHOW HOLDERS says {rows:?}");
        sleep(Duration::from_millis(20)).await;
    };
    for reader in 0..SIZE {
        let name = format!("reader {reader}");
        assert!(
            rows.iter().any(|row| row["application_name"] == name && number(row, "remote_pid") > 0),
            "{name} in {rows:?}"
        );
    }
    // Nobody waits: nobody is hurt, however long it takes.
    sleep(LIMIT + Duration::from_secs(1)).await;
    assert_eq!(house.show("HOLDERS").await.len(), SIZE);
    let began = Instant::now();
    let mut others = Vec::new();
    for _ in 0..SIZE {
        let mut other = house.client().await;
        other.send(&frame::query("select 'served'")).await.unwrap();
        others.push(other);
    }
    for other in &mut others {
        assert_eq!(reply(other).await.unwrap().value(), Some("served"));
    }
    assert!(began.elapsed() < LIMIT + Duration::from_secs(2), "served after {:?}", began.elapsed());
    assert!(house.metric("holders_closed_total").await >= 1.0);
}

/// A client that stops in the middle of a message keeps a server from those who wait for `client_message_timeout`
/// at most; and one that has not begun to use a server keeps none.
#[tokio::test(flavor = "multi_thread")]
async fn half_sent_messages_do_not_hold_a_server_for_long() {
    const LIMIT: Duration = Duration::from_secs(1);
    let house =
        House::start(|setup| setup.setting("default_pool_size", "1").setting("client_message_timeout", "1"));
    let mut other = house.client().await;
    value(&mut other, "select 1").await;
    // An idle client with half a query: it has no server, and nothing is to be waited for.
    let mut slow = house.client().await;
    slow.send(&frame::query("select 'late'")[..9]).await.unwrap();
    let began = Instant::now();
    assert_eq!(value(&mut other, "select 'at once'").await, "at once");
    assert!(began.elapsed() < LIMIT / 2);
    sleep(LIMIT + LIMIT / 2).await;
    slow.send(&frame::query("select 'late'")[9..]).await.unwrap();
    assert_eq!(
        reply(&mut slow).await.unwrap().value(),
        Some("late"),
        "half a query without a server is no offence"
    );
    // In a transaction, and in a message too long to be held back.
    let long = frame::query(&format!("select '{}'", "x".repeat(300_000)));
    for (sql, half) in [(Some("begin"), &frame::query("select 'late'")[..9]), (None, &long[..200_000])] {
        let mut holder = house.client().await;
        if let Some(sql) = sql {
            value(&mut holder, sql).await;
        }
        holder.send(half).await.unwrap();
        house.wait_pool("the server is held", |pool| pool["sv_active"] == "1").await;
        sleep(LIMIT + LIMIT / 2).await;
        let holders = house.show("HOLDERS").await;
        assert_eq!(holders.len(), 1, "nobody waits, so nobody is closed");
        assert_eq!(holders[0]["reason"], "half-sent message");
        let began = Instant::now();
        assert_eq!(value(&mut other, "select 'served'").await, "served");
        assert!(began.elapsed() < LIMIT + LIMIT, "served after {:?}", began.elapsed());
        let end = within(PATIENCE, "the holder's end", holder.wait_closed()).await.unwrap();
        assert_eq!(end.map(|error| error.message).as_deref(), Some("client_message_timeout"));
    }
}

/// Looks at the pooler's memory again and again.
struct Memory {
    before: u64,
    done: Arc<AtomicBool>,
    peak: JoinHandle<u64>,
}

impl Memory {
    fn watch(house: &House) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let (pid, seen) = (house.pooler.pid(), done.clone());
        let peak = tokio::spawn(async move {
            let mut peak = 0;
            while !seen.load(Ordering::Relaxed) {
                peak = peak.max(drill::process::resident_bytes(pid).unwrap());
                sleep(Duration::from_millis(10)).await;
            }
            peak
        });
        Self { before: house.resident_bytes(), done, peak }
    }

    async fn assert_bounded(self, what: &str) {
        self.done.store(true, Ordering::Relaxed);
        let growth = self.peak.await.unwrap().saturating_sub(self.before);
        assert!(growth < GROWTH, "{what}: the pooler grew by {} kB", growth / 1024);
    }
}
