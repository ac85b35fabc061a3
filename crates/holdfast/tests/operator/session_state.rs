//! What a session holds, in transaction mode: to each client it is as if the server were its own, and nothing of one is
//! ever seen by another.

use drill::process::Signal;
use drill::wire::{Connection, Error, frame};
use tokio::time::timeout;

use crate::support::{House, PATIENCE, code, connect, eventually, number, value, within};

fn pool_of(size: &str) -> House {
    House::start(|setup| setup.setting("default_pool_size", size))
}

const LOCKS: &str = "select count(*) from pg_locks where locktype = 'advisory'";

/// What PostgreSQL itself says, past the pooler.
fn count(house: &House, sql: &str) -> String {
    house.postgres.admin(sql).unwrap()[0][0].clone().unwrap()
}

/// The answer is the client's before the pooler has asked what is left.
async fn wait_pinned(house: &House, count: usize) {
    let end = tokio::time::Instant::now() + PATIENCE;
    while house.metric("pinned_servers").await != count as f64 {
        assert!(tokio::time::Instant::now() < end, "not {count} pinned servers");
    }
}

/// Why the session has ended.
async fn ended(client: &mut Connection) -> Error {
    loop {
        if let Err(error) = within(PATIENCE, "the end", client.read_message()).await {
            return error;
        }
    }
}

const ASK: &str = "select concat_ws('/', current_setting('search_path'), current_setting('statement_timeout'), \
     current_setting('work_mem'), coalesce(current_setting('app.user', true), ''), coalesce(current_setting('app.team', true), ''), \
     current_setting('role'), current_setting('TimeZone'), current_setting('application_name'))";

/// Statements of one client; PostgreSQL says what is to be seen after each.
const SETTINGS: [&str; 31] = [
    "set statement_timeout = '7s'",
    "set search_path to a, \"B c\"",
    "select set_config('app.user', 'o''hara', false)",
    "select set_config('app.user', 'for now', true)",
    "set local work_mem = '9MB'",
    "begin; set work_mem = '5MB'; commit",
    "begin; set work_mem = '6MB'; rollback",
    "begin",
    "set work_mem = '7MB'",
    "savepoint s",
    "set work_mem = '8MB'; set app.team = 'x'",
    "rollback to s",
    "set app.team = 'y'",
    "commit",
    "set session app.team = 'z'; select 1/0",
    "set role bench",
    "set timezone to 'Asia/Tokyo'",
    "/* a driver */ set application_name to 'me'",
    "reset work_mem",
    "set statement_timeout to default",
    "reset app.user",
    "select pg_catalog.set_config('search_path', '', false)",
    "do $$ begin perform set_config('work_mem', '11MB', false); end $$",
    "do $$ begin set app.team = 'in a block'; end $$",
    "begin; reset all; rollback",
    "reset role",
    "select 1/0; set work_mem = '12MB'",
    "reset all",
    "set work_mem = '13MB'",
    "discard all",
    "select 1",
];

/// Poolers kept only what servers report: `SET search_path` of one client was seen by the next one, or lost.
/// pgcat #64, PR #152, PR #186; pgdog #57, #1055, #677; pgbouncer #976
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_client_sees_its_own_settings_as_at_a_server_of_its_own() {
    for extended in [false, true] {
        let house = pool_of("1");
        let options = house.options().parameter("application_name", "start").parameter("work_mem", "3MB");
        let straight = drill::wire::ConnectOptions {
            address: drill::wire::Address::Tcp(house.postgres.tcp_address()),
            ..options.clone()
        };
        let (mut own, mut pooled) = (connect(&straight).await, connect(&options).await);
        let mut other = house.client().await;
        let others = value(&mut other, ASK).await;
        for sql in SETTINGS {
            for client in [&mut own, &mut pooled] {
                if extended && !sql.contains(';') {
                    within(PATIENCE, sql, client.extended_query(sql, &[])).await.unwrap();
                } else {
                    within(PATIENCE, sql, client.query(sql)).await.unwrap();
                }
            }
            assert_eq!(pooled.status(), own.status(), "{sql}");
            if own.status() == Some(drill::wire::TransactionStatus::Idle) {
                // Another one has the server in between.
                assert_eq!(value(&mut other, ASK).await, others, "after {sql}");
            }
            let (expected, seen) = (value(&mut own, ASK).await, value(&mut pooled, ASK).await);
            assert_eq!(seen, expected, "after {sql}");
        }
        assert_eq!(house.pool().await["sv_active"], "0", "nobody was pinned");
        assert_eq!(house.metric("pins_total").await, 0.0);
    }
}

/// A lock taken on one server was released on another, and stayed.
/// rails #31190, #22092, #32622
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_advisory_lock_keeps_its_server_until_it_is_released() {
    let house = pool_of("2");
    let (mut holder, mut other) = (house.client().await, house.client().await);
    assert_eq!(value(&mut holder, "select pg_try_advisory_lock(7)").await, "t");
    let backend = value(&mut holder, "select pg_backend_pid()").await;
    for _ in 0..5 {
        assert_ne!(value(&mut other, "select pg_backend_pid()").await, backend);
        assert_eq!(value(&mut other, "select pg_try_advisory_lock(7)").await, "f");
        value(&mut holder, "begin; select 1; commit").await;
        assert_eq!(value(&mut holder, "select pg_backend_pid()").await, backend);
    }
    let holders = house.show("HOLDERS").await;
    assert_eq!(holders.len(), 1, "{holders:?}");
    assert_eq!(holders[0]["reason"], "advisory lock of the session");
    assert_eq!(holders[0]["remote_pid"], backend);
    wait_pinned(&house, 1).await;
    assert_eq!(value(&mut holder, "select pg_advisory_unlock(7)").await, "t");
    wait_pinned(&house, 0).await;
    assert!(house.show("HOLDERS").await.is_empty());
    assert_eq!(value(&mut other, "select pg_try_advisory_lock(7)").await, "t");
    // Of a transaction alone: nothing stays.
    assert_eq!(value(&mut holder, "select pg_try_advisory_xact_lock(8)").await, "t");
    wait_pinned(&house, 1).await;
    // One that leaves takes its lock with it.
    other.abort().unwrap();
    house.wait_pool("the server is clean", |pool| pool["sv_idle"] == "2").await;
    assert_eq!(value(&mut holder, "select pg_try_advisory_lock(7)").await, "t");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_follow_a_client_keeps_its_server_and_gives_it_back_when_it_is_gone() {
    let house = pool_of("2");
    let mut other = house.client().await;
    for (take, use_it, give_back) in [
        ("create temp table t (a int)", "select count(*) from t", "drop table t"),
        ("create table pg_temp.t (a int)", "select count(*) from t", "discard temp"),
        ("select 1 as a into temp t", "select count(*) from t", "drop table t"),
        ("begin; declare c cursor with hold for select 1; commit", "fetch c", "close c"),
        ("begin; declare c cursor with hold for select 1; commit", "move c", "close all"),
        ("prepare p as select 1", "execute p", "deallocate p"),
        ("prepare p as select 1", "execute p", "deallocate all"),
        ("listen x", "select 1", "unlisten x"),
        ("listen x", "select 1", "discard all"),
        ("listen x", "select 1", "SELECT pg_advisory_unlock_all();CLOSE ALL;UNLISTEN *;RESET ALL;"),
        ("select pg_advisory_lock(1)", "select 1", "select pg_advisory_unlock_all()"),
    ] {
        let mut client = house.client().await;
        value(&mut client, take).await;
        let backend = value(&mut client, "select pg_backend_pid()").await;
        for _ in 0..2 {
            assert_ne!(value(&mut other, "select pg_backend_pid()").await, backend, "{take}");
            value(&mut client, use_it).await;
        }
        wait_pinned(&house, 1).await;
        value(&mut client, give_back).await;
        wait_pinned(&house, 0).await;
        value(&mut client, "select 1").await;
        client.terminate().await.unwrap();
    }
    // What is undone with its transaction is nobody's.
    let mut client = house.client().await;
    for sql in [
        "begin; create temp table t (a int); rollback",
        "begin; create temp table t (a int) on commit drop; commit",
        "begin; listen x; rollback",
        "begin; declare c cursor for select 1; commit",
    ] {
        value(&mut client, sql).await;
        wait_pinned(&house, 0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_listens_hears_what_others_notify_while_it_is_idle() {
    let house = pool_of("2");
    let (mut listener, mut other) = (house.client().await, house.client().await);
    value(&mut listener, "listen news").await;
    for number in 0..20 {
        value(&mut other, &format!("notify news, '{number}'")).await;
        let message = within(PATIENCE, "a notification", listener.read_message()).await.unwrap();
        assert_eq!(message.kind, b'A', "{message:?}");
        let text = String::from_utf8_lossy(&message.body).into_owned();
        assert!(text.ends_with(&format!("news\0{number}\0")), "{text:?}");
    }
    value(&mut listener, "unlisten news").await;
    value(&mut other, "notify news").await;
    let silence = timeout(std::time::Duration::from_millis(200), listener.read_message()).await;
    assert!(silence.is_err(), "{silence:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_is_left_for_the_others_and_refusing_or_ignoring_is_a_choice() {
    let house = pool_of("2");
    let (mut first, mut second, mut third) =
        (house.client().await, house.client().await, house.client().await);
    value(&mut first, "select pg_advisory_lock(1)").await;
    second.send(&frame::query("select pg_advisory_lock(2)")).await.unwrap();
    let told = ended(&mut second).await;
    assert_eq!(code(&told), "53H02", "{told}");
    assert!(told.to_string().contains("advisory lock"), "{told}");
    eventually(PATIENCE, "the lock is gone", || count(&house, LOCKS) == "1").await;
    assert_eq!(value(&mut third, "select 1").await, "1");
    assert_eq!(house.metric("pin_refusals_total").await, 1.0);

    let house =
        House::start(|setup| setup.setting("default_pool_size", "2").setting("session_state", "refuse"));
    let mut client = house.client().await;
    value(&mut client, "set work_mem = '5MB'").await;
    assert_eq!(value(&mut client, "show work_mem").await, "5MB", "what can follow does");
    client.send(&frame::query("listen x")).await.unwrap();
    let told = ended(&mut client).await;
    assert_eq!(code(&told), "0A000", "{told}");

    let house =
        House::start(|setup| setup.setting("default_pool_size", "1").setting("session_state", "ignore"));
    let (mut client, mut other) = (house.client().await, house.client().await);
    value(&mut client, "select pg_advisory_lock(1)").await;
    value(&mut client, "set work_mem = '5MB'").await;
    assert_eq!(value(&mut other, "show work_mem").await, "5MB", "nobody looks");
    assert_eq!(house.metric("session_probes_total").await, 0.0);
}

/// Almost every session of a proxy was pinned: nothing was shared any more.
/// npgsql #3731, asyncpg #1153, psqlodbc #143, prisma #5866
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_drivers_send_by_themselves_pins_nobody_and_is_seldom_asked_about() {
    const CONNECT: [&[&str]; 6] = [
        // asyncpg
        &["select current_setting('jit'), set_config('jit', 'off', false)"],
        // JDBC
        &["SET extra_float_digits = 3", "SET application_name = 'PostgreSQL JDBC Driver'"],
        // ActiveRecord
        &[
            "SET client_min_messages TO 'warning'",
            "SET standard_conforming_strings = on",
            "SET SESSION timezone TO 'UTC'",
        ],
        // Django
        &["SELECT set_config('TimeZone', 'UTC', false)"],
        // SQLAlchemy, psycopg
        &["show standard_conforming_strings", "select pg_catalog.version()", "SET DateStyle TO 'ISO'"],
        // psqlODBC
        &["set extra_float_digits to 2", "SET DateStyle = 'ISO';SET bytea_output = 'hex'"],
    ];
    const RELEASE: [&str; 6] = [
        "SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;",
        "ROLLBACK",
        "DISCARD ALL",
        "SELECT 1",
        "ROLLBACK",
        "SET SESSION AUTHORIZATION DEFAULT;RESET ALL;CLOSE ALL;UNLISTEN *;SELECT pg_advisory_unlock_all();DISCARD SEQUENCES;DISCARD TEMP",
    ];
    let house = pool_of("2");
    let mut clients = Vec::new();
    for number in 0..100 {
        let mut client = house.client().await;
        for sql in CONNECT[number % CONNECT.len()] {
            let reply = within(PATIENCE, sql, client.extended_query(sql, &[])).await.unwrap();
            if reply.error().is_some() {
                within(PATIENCE, sql, client.query(sql)).await.unwrap().into_result().unwrap();
            }
        }
        clients.push(client);
    }
    let after_connect = house.metric("session_probes_total").await;
    // One for each that sets what no server reports; none for what it reports.
    assert!((60.0..=90.0).contains(&after_connect), "{after_connect} questions");
    for (number, client) in clients.iter_mut().enumerate() {
        for _ in 0..3 {
            assert_eq!(value(client, "select 1").await, "1");
        }
        value(client, RELEASE[number % RELEASE.len()]).await;
        assert_eq!(value(client, "select 2").await, "2");
    }
    assert_eq!(house.metric("session_probes_total").await, after_connect, "work and resets ask nothing");
    assert_eq!(house.metric("pins_total").await, 0.0);
    assert!(house.backend_pids().len() <= 2);
}

/// BEGIN was answered by the server and never relayed; the connection was back in its pool inside a transaction.
/// supavisor #1172
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelined_transactions_leave_no_server_in_one() {
    let house = pool_of("2");
    let batch: Vec<u8> =
        ["begin read only", "select 1", "commit"].iter().flat_map(|sql| frame::query(sql)).collect();
    let mut tasks = Vec::new();
    for _ in 0..10 {
        let mut client = house.client().await;
        let batch = batch.clone();
        tasks.push(tokio::spawn(async move {
            for _ in 0..200 {
                client.send(&batch).await.unwrap();
                for tag in ["BEGIN", "SELECT 1", "COMMIT"] {
                    let reply = within(PATIENCE, tag, client.read_reply()).await.unwrap();
                    assert_eq!(reply.tags, [tag]);
                }
            }
            client
        }));
    }
    for task in tasks {
        within(PATIENCE * 3, "the work", task).await.unwrap();
    }
    let in_transaction = "select count(*) from pg_stat_activity where state like 'idle in transaction%'";
    assert_eq!(count(&house, in_transaction), "0");
}

/// A lock that a client of session mode had left was held on by a server that transaction mode used then.
/// pgbouncer #418
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_the_mode_leaves_nothing_behind() {
    let house = House::start(|setup| {
        setup
            .setting("default_pool_size", "1")
            .setting("pool_mode", "session")
            .setting("server_reset_query", "")
    });
    let mut client = house.client().await;
    value(&mut client, "select pg_advisory_lock(1); set work_mem = '5MB'").await;
    client.terminate().await.unwrap();
    house.wait_pool("it is back", |pool| pool["sv_idle"] == "1").await;
    assert_eq!(count(&house, LOCKS), "1", "the operator wants no reset in session mode");
    let file = std::fs::read_to_string(house.pooler.config()).unwrap();
    std::fs::write(house.pooler.config(), file.replace("pool_mode = session", "pool_mode = transaction"))
        .unwrap();
    house.pooler.signal(Signal::HUP).unwrap();
    house.wait_pool("the mode has changed", |pool| pool["pool_mode"] == "transaction").await;
    let mut client = house.client().await;
    assert_ne!(value(&mut client, "show work_mem").await, "5MB");
    assert_eq!(value(&mut client, LOCKS).await, "0");
}

/// A cancel request for a query hit what the pooler asked behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancels_never_hit_what_the_pooler_itself_asks() {
    let house = pool_of("1");
    let mut client = house.client().await;
    let key = client.cancel_key().unwrap().clone();
    let address = house.options().address;
    for number in 0..100 {
        let sql = format!("set work_mem = '{}MB'", 4 + number % 2);
        client.send(&frame::query(&sql)).await.unwrap();
        Connection::cancel_with(&address, key.process_id, &key.secret).await.unwrap();
        let reply = within(PATIENCE, &sql, client.read_reply()).await.unwrap();
        let expected = format!("{}MB", if reply.errors.is_empty() { 4 + number % 2 } else { 5 - number % 2 });
        if reply.errors.is_empty() || number > 0 {
            assert_eq!(value(&mut client, "select current_setting('work_mem')").await, expected, "{number}");
        }
    }
    assert_eq!(number(&house.pool().await, "sv_active"), 0);
}

/// What a statement may leave behind counts when it is run, not when it is prepared.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prepared_statement_leaves_its_state_when_it_is_run() {
    let house = pool_of("2");
    let (mut client, mut other) = (house.client().await, house.client().await);
    for (name, sql) in [
        ("lock", "select pg_advisory_lock(1)"),
        ("unlock", "select pg_advisory_unlock(1)"),
        ("set", "set work_mem = '5MB'"),
        ("config", "select set_config('app.user', 'me', false)"),
        ("", "select pg_advisory_lock(2)"),
    ] {
        client.send(&[frame::parse(name, sql), frame::sync()].concat()).await.unwrap();
        within(PATIENCE, sql, client.read_reply()).await.unwrap().into_result().unwrap();
    }
    let run = |name: &str| [frame::bind("", name, &[]), frame::execute("", 0), frame::sync()].concat();
    // The unnamed one is the client's still, whoever has had the server since.
    assert_eq!(value(&mut other, "select 1").await, "1");
    client.send(&run("")).await.unwrap();
    within(PATIENCE, "an unnamed lock", client.read_reply()).await.unwrap().into_result().unwrap();
    wait_pinned(&house, 1).await;
    value(&mut client, "select pg_advisory_unlock_all()").await;
    wait_pinned(&house, 0).await;
    for (name, pinned) in [("lock", 1), ("set", 1), ("config", 1), ("unlock", 0), ("set", 0)] {
        client.send(&run(name)).await.unwrap();
        within(PATIENCE, name, client.read_reply()).await.unwrap().into_result().unwrap();
        wait_pinned(&house, pinned).await;
    }
    for _ in 0..3 {
        assert_eq!(
            value(
                &mut other,
                "select concat(current_setting('app.user', true), current_setting('work_mem'))"
            )
            .await,
            "4MB"
        );
        let own = "select concat(current_setting('app.user', true), current_setting('work_mem'))";
        assert_eq!(value(&mut client, own).await, "me5MB");
    }
}

/// The pooler's own queries drop a server's unnamed statement, as any simple query does; the client does not notice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unnamed_statement_outlives_what_the_pooler_itself_asks() {
    let house = House::start(|setup| {
        setup
            .setting("default_pool_size", "1")
            .setting("server_check_delay", "0")
            .setting("max_prepared_statements", "100")
    });
    let mut client = connect(&house.options().parameter("work_mem", "3MB")).await;
    let mut other = house.client().await;
    let run = [frame::bind("", "", &[]), frame::execute("", 0), frame::sync()].concat();
    client.send(&[frame::parse("", "select 'mine'"), frame::sync()].concat()).await.unwrap();
    within(PATIENCE, "a Parse", client.read_reply()).await.unwrap().into_result().unwrap();
    for round in 0..6 {
        if round % 2 == 0 {
            within(PATIENCE, "another one", other.extended_query("select 1", &[])).await.unwrap();
        }
        client.send(&run).await.unwrap();
        let reply = within(PATIENCE, "a Bind", client.read_reply()).await.unwrap();
        assert_eq!((reply.error(), reply.tags.len()), (None, 1), "{round}");
    }
}
