//! The extended protocol, COPY, and requests in pieces.

use std::time::Duration;

use drill::postgres::StopMode;
use drill::wire::{Connection, Reply, TransactionStatus, frame};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::support::{House, PATIENCE, code, number, reply, value, within};

/// The pool's time limit was answered inside an extended batch with a ReadyForQuery before its Sync, and another one
/// after it: client and pooler were apart from then on.
/// pgcat PR #137
#[tokio::test(flavor = "multi_thread")]
async fn refused_extended_batch_gets_one_error_and_one_ready() {
    let mut house = House::start(|setup| {
        setup
            .setting("default_pool_size", "1")
            .setting("query_wait_timeout", "1")
            .setting("server_login_retry", "0")
    });
    let mut holder = house.client().await;
    value(&mut holder, "begin; select 1").await;
    let parts =
        [frame::parse("", "select 1"), frame::bind("", "", &[]), frame::execute("", 0), frame::sync()];
    // The waiting line's limit ends the session (as in PgBouncer): one error, nothing else.
    let mut queued = house.client().await;
    queued.send(&parts.concat()).await.unwrap();
    let end = reply(&mut queued).await.unwrap_err();
    assert_eq!(code(&end), "53H01", "{end}");
    assert!(end.server().unwrap().is_fatal());
    // A cancel ends the request alone. Its Sync is sent before the answer, or long after it.
    for sync_comes_late in [false, true] {
        let mut queued = house.client().await;
        queued.send(&parts[..3].concat()).await.unwrap();
        if !sync_comes_late {
            queued.send(&parts[3]).await.unwrap();
        }
        house.wait_waiting(1).await;
        queued.cancel().await.unwrap();
        let error = within(PATIENCE, "the error", queued.read_message()).await.unwrap();
        assert_eq!(error.kind, b'E');
        if sync_comes_late {
            let early = tokio::time::timeout(Duration::from_millis(100), queued.read_message()).await;
            assert!(early.is_err(), "something came before the Sync: {early:?}");
            queued.send(&parts[3]).await.unwrap();
        }
        let rest = reply(&mut queued).await.unwrap();
        assert_eq!((&*rest.kinds, rest.status), ("Z", Some(TransactionStatus::Idle)));
        value(&mut holder, "commit").await;
        assert_eq!(value(&mut queued, "select 'in step'").await, "in step");
        value(&mut holder, "begin; select 1").await;
    }
    // And so does a database that is down.
    value(&mut holder, "commit").await;
    house.postgres.stop(StopMode::Fast).unwrap();
    house.wait_pool("the server has gone", |pool| pool["sv_idle"] == "0").await;
    holder.send(&parts.concat()).await.unwrap();
    let refused = reply(&mut holder).await.unwrap();
    assert_eq!((&*refused.kinds, &*refused.error().unwrap().code), ("EZ", "08001"), "{refused:?}");
}

/// COPY by the extended protocol, with a Sync too many while data is expected: the connection was never given back.
/// pgbouncer #1023, #1024, PR #1025; pgdog PR #885, #886
#[tokio::test(flavor = "multi_thread")]
async fn sync_during_copy_in_gives_no_answer_and_keeps_no_server() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    house.postgres.admin("create table t (a int); grant all on t to bench").unwrap();
    let mut answers = Vec::new();
    for mut client in [house.direct().await, house.client().await] {
        let begin = [
            frame::parse("", "copy t from stdin"),
            frame::bind("", "", &[]),
            frame::execute("", 0),
            frame::sync(),
        ];
        client.send(&begin.concat()).await.unwrap();
        let asked = reply(&mut client).await.unwrap();
        let data = [frame::copy_data(b"1\n2\n"), frame::copy_done(), frame::sync()];
        client.send(&data.concat()).await.unwrap();
        let done = reply(&mut client).await.unwrap();
        answers.push((asked.kinds, done.kinds, done.tags));
        // Nothing more has come: the next answer is the next query's.
        assert_eq!(value(&mut client, "select 'next'").await, "next");
        client.terminate().await.unwrap();
    }
    assert_eq!(answers[0], answers[1], "PostgreSQL, then the pooler");
    let mut other = house.client().await;
    assert_eq!(value(&mut other, "select count(*) from t").await, "4");
}

/// The connection went to somebody else between "send me your data" and the data.
/// pgcat PR #522
#[tokio::test(flavor = "multi_thread")]
async fn server_stays_with_its_client_during_copy() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    house.postgres.admin("create table t (who int, what int); grant all on t to bench").unwrap();
    let mut tasks = JoinSet::new();
    for who in 0..10 {
        let mut client = house.client().await;
        tasks.spawn(async move {
            for round in 0..5 {
                let asked = if round % 2 == 0 {
                    within(PATIENCE, "copy", client.query("copy t from stdin")).await.unwrap()
                } else {
                    let copy = [frame::parse("", "copy t from stdin"), frame::bind("", "", &[])];
                    client.send(&[&copy.concat()[..], &frame::execute("", 0)].concat()).await.unwrap();
                    client.send(&frame::flush()).await.unwrap();
                    reply(&mut client).await.unwrap()
                };
                assert!(asked.kinds.ends_with('G'), "{asked:?}");
                for what in 0..3 {
                    sleep(Duration::from_millis(3)).await;
                    client.send(&frame::copy_data(format!("{who}\t{what}\n").as_bytes())).await.unwrap();
                }
                sleep(Duration::from_millis(3)).await;
                client.send(&frame::copy_done()).await.unwrap();
                if round % 2 == 1 {
                    client.send(&frame::sync()).await.unwrap();
                }
                let done = reply(&mut client).await.unwrap();
                assert_eq!(done.tags, ["COPY 3"], "{done:?}");
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    let mut client = house.client().await;
    let rows = "select count(*) from (select who, what from t group by 1, 2 having count(*) = 5) as whole";
    assert_eq!(value(&mut client, rows).await, "30");
    let pool = house.pool().await;
    assert_eq!(number(&pool, "sv_idle"), 1, "{pool:?}");
}

/// A request may come in any pieces. Each cut of a simple and of an extended request gives the same answer.
#[tokio::test(flavor = "multi_thread")]
async fn request_split_at_every_byte_gives_the_same_answer() {
    let house = House::start(|setup| setup.setting("default_pool_size", "1"));
    let simple = frame::query("select 'a', 2");
    let extended = frame::extended_query("select $1::text, 2", &[Some("a")]);
    let named = [
        frame::parse("s", "select $1::text, 2"),
        frame::flush(),
        frame::bind("p", "s", &[Some("a")]),
        frame::describe_portal("p"),
        frame::execute("p", 0),
        frame::close_statement("s"),
        frame::sync(),
    ]
    .concat();
    let pipeline = [&simple[..], &extended, &simple].concat();
    let mut client = house.client().await;
    for (request, replies) in [(simple, 1), (extended, 1), (named, 1), (pipeline, 3)] {
        let whole = answers(&mut client, &request, &[request.len()], replies).await;
        assert_eq!(whole[0].rows, [[Some("a".to_owned()), Some("2".to_owned())]]);
        for cut in 1..request.len() {
            let pieces = [cut, request.len() - cut];
            assert_eq!(answers(&mut client, &request, &pieces, replies).await, whole, "cut at {cut}");
        }
        assert_eq!(answers(&mut client, &request, &[1], replies).await, whole, "byte by byte");
    }
}

async fn answers(client: &mut Connection, request: &[u8], pieces: &[usize], count: usize) -> Vec<Reply> {
    client.send_in_pieces(request, pieces).await.unwrap();
    let mut answers = Vec::new();
    for _ in 0..count {
        answers.push(reply(client).await.unwrap());
    }
    answers
}
