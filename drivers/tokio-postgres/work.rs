//! tokio-postgres: every query is a named statement (closed when it is dropped), and what is not waited for is a pipeline.

use std::error::Error;
use std::time::{Duration, SystemTime};
use std::{env, iter};

use bytes::Bytes;
use futures_util::future::{join_all, try_join_all};
use futures_util::{SinkExt, TryStreamExt, pin_mut, stream};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::sleep;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, IsolationLevel, NoTls, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

const WORD: &str = "Ünïcödé 漢字 🐘 'quoted' \"double\" back\\slash";

/// It reads nothing of the environment by itself.
fn config() -> Config {
    let word = |name: &str| env::var(name).unwrap_or_default();
    let mut config = Config::new();
    config.host(word("PGHOST")).port(word("PGPORT").parse().unwrap());
    config.user(word("PGUSER")).password(word("PGPASSWORD")).dbname(word("PGDATABASE"));
    if tls().is_some() {
        config.ssl_mode(tokio_postgres::config::SslMode::Require);
    }
    config
}

fn tls() -> Option<MakeRustlsConnect> {
    if env::var("PGSSLMODE").is_ok_and(|mode| mode == "disable") {
        return None;
    }
    let mut roots = RootCertStore::empty();
    let file = env::var("PGSSLROOTCERT").unwrap();
    roots.add_parsable_certificates(CertificateDer::pem_file_iter(file).unwrap().map(Result::unwrap));
    Some(MakeRustlsConnect::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()))
}

/// A client, and what it hears in between.
async fn connect() -> Outcome<(Client, tokio::sync::mpsc::UnboundedReceiver<String>)> {
    let (tell, heard) = tokio::sync::mpsc::unbounded_channel();
    let hear = move |message: AsyncMessage| {
        if let AsyncMessage::Notification(notice) = message {
            let _ = tell.send(notice.payload().to_owned());
        }
    };
    macro_rules! drive {
        ($connection:expr) => {{
            let mut connection = $connection;
            tokio::spawn(async move {
                let messages = stream::poll_fn(move |context| connection.poll_message(context));
                pin_mut!(messages);
                while let Ok(Some(message)) = messages.try_next().await {
                    hear(message);
                }
            });
        }};
    }
    let client = match tls() {
        None => {
            let (client, connection) = config().connect(NoTls).await?;
            drive!(connection);
            client
        }
        Some(tls) => {
            let (client, connection) = config().connect(tls).await?;
            drive!(connection);
            client
        }
    };
    Ok((client, heard))
}

#[track_caller]
fn fails<T>(code: &str, seen: Result<T, tokio_postgres::Error>) {
    let seen = seen.err().expect("an error").code().map(|code| code.code().to_owned());
    assert_eq!(seen.as_deref(), Some(code));
}

async fn number(db: &Client, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Outcome<i64> {
    Ok(db.query_one(sql, parameters).await?.try_get(0)?)
}

async fn types(db: &Client) -> Outcome {
    let bytes: Vec<u8> = (0..=255).collect();
    let words = vec![Some(WORD), Some(""), None, Some("NULL"), Some("{,}")];
    let moment = SystemTime::UNIX_EPOCH + Duration::from_micros(1_709_209_801_123_456);
    let kept = db.prepare("select $1::int8, $2::text, $3::bytea, $4::text[], $5::timestamptz, $6::hstore_none").await;
    fails("42704", kept);
    let kept =
        db.prepare("select $1::int8, $2::text, $3::bytea, $4::text[], $5::timestamptz, $6::bool, $7::float8").await?;
    for _ in 0..8 {
        let row = db.query_one(&kept, &[&(1_i64 << 62), &WORD, &bytes, &words, &moment, &true, &0.1_f64]).await?;
        assert_eq!(row.get::<_, i64>(0), 1 << 62);
        assert_eq!(row.get::<_, &str>(1), WORD);
        assert_eq!(row.get::<_, &[u8]>(2), bytes);
        assert_eq!(row.get::<_, Vec<Option<&str>>>(3), words);
        assert_eq!(row.get::<_, SystemTime>(4), moment);
        let row = db.query_one("select $1::int4, $2::int2[]", &[&None::<i32>, &vec![1_i16, -2]]).await?;
        assert_eq!((row.get::<_, Option<i32>>(0), row.get::<_, Vec<i16>>(1)), (None, vec![1, -2]));
    }
    // The driver asks for what it knows of a type with statements of its own.
    db.batch_execute("set client_min_messages = warning; drop type if exists tokio_mood; create type tokio_mood as enum ('sad', 'glad')")
        .await?;
    let row = db.query_one("select 'glad'::tokio_mood, array['sad'::tokio_mood]", &[]).await?;
    assert_eq!(row.columns()[1].type_().name(), "_tokio_mood");
    db.batch_execute("drop type tokio_mood").await?;
    Ok(())
}

const INSERT: &str = "insert into tokio_t values ($1, $2, $3)";

async fn transactions(db: &mut Client) -> Outcome {
    db.batch_execute(
        "drop table if exists tokio_t; create table tokio_t (id int primary key, word text, amount float8)",
    )
    .await?;
    for turn in 0..2 {
        let mut transaction =
            db.build_transaction().isolation_level(IsolationLevel::Serializable).start().await?;
        let insert = transaction.prepare(INSERT).await?;
        for id in 0..12 {
            transaction.execute(&insert, &[&id, &WORD, &f64::from(id)]).await?;
        }
        if turn == 0 {
            transaction.rollback().await?;
            assert_eq!(number(db, "select count(*) from tokio_t", &[]).await?, 0);
            continue;
        }
        let inner = transaction.savepoint("before").await?;
        fails("23505", inner.execute(&insert, &[&3, &"twice", &0.0]).await);
        fails("25P02", inner.query("select 1", &[]).await);
        inner.rollback().await?;
        transaction.execute("update tokio_t set amount = amount + 1 where id = $1", &[&3]).await?;
        transaction.commit().await?;
    }
    assert_eq!(number(db, "select amount::int8 from tokio_t where id = 3", &[]).await?, 4);
    // Dropped without a word: rolled back.
    let transaction = db.transaction().await?;
    transaction.execute("delete from tokio_t", &[]).await?;
    drop(transaction);
    assert_eq!(number(db, "select count(*) from tokio_t", &[]).await?, 12);
    Ok(())
}

async fn mistakes(db: &Client) -> Outcome {
    let divide = db.prepare("select 12 / $1::int4").await?;
    for _ in 0..7 {
        fails("23505", db.execute(INSERT, &[&1, &"twice", &0.0]).await);
        fails("42601", db.query("selec 1", &[]).await);
        fails("42601", db.batch_execute("selec 1").await);
        fails("22012", db.query(&divide, &[&0]).await);
        assert_eq!(db.query_one(&divide, &[&4]).await?.get::<_, i32>(0), 3);
        fails("42P01", db.query("select * from tokio_none", &[]).await);
        fails("22012", db.batch_execute("insert into tokio_t values (500, 'a', 0); select 1/0").await);
    }
    assert_eq!(number(db, "select count(*) from tokio_t where id = 500", &[]).await?, 0);
    let seen = db.simple_query("select 1; update tokio_t set word = word; select 2").await?;
    assert_eq!(seen.iter().filter(|one| matches!(one, SimpleQueryMessage::CommandComplete(_))).count(), 3);
    Ok(())
}

async fn pipelines(db: &Client) -> Outcome {
    let next = db.prepare("select $1::int8 + 1").await?;
    for _ in 0..3 {
        let seen = try_join_all((0..200_i64).map(|n| {
            let next = &next;
            async move { db.query_one(next, &[&n]).await.map(|row| row.get::<_, i64>(0)) }
        }))
        .await?;
        assert!(seen.into_iter().eq(1..=200));
        let mixed = join_all(["select 1", "selec 1", "select 2", "select 1/0", "select 3"].map(|sql| db.query(sql, &[]))).await;
        assert_eq!(mixed.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true, false, true]);
        // Statements without a name, with their types: all in one go.
        let row = db.query_typed("select $1", &[(&WORD, tokio_postgres::types::Type::TEXT)]).await?;
        assert_eq!(row[0].get::<_, &str>(0), WORD);
    }
    Ok(())
}

async fn copies(db: &Client) -> Outcome {
    db.batch_execute("drop table if exists tokio_c; create table tokio_c (id int, word text)").await?;
    let escaped = WORD.replace('\\', "\\\\");
    let line = |n: usize| format!("{n}\t{}\n", if n % 2 == 1 { &escaped } else { "\\N" });
    let text: String = (0..6000).map(line).collect();
    let sink = db.copy_in("copy tokio_c from stdin").await?;
    pin_mut!(sink);
    for n in 0..6000 {
        sink.feed(Bytes::from(line(n))).await?;
    }
    assert_eq!(sink.finish().await?, 6000);
    let out: Vec<Bytes> =
        db.copy_out("copy (select * from tokio_c order by id) to stdout").await?.try_collect().await?;
    assert!(out.concat() == text.as_bytes());
    for _ in 0..3 {
        let sink = db.copy_in("copy tokio_c (id) from stdin").await?;
        pin_mut!(sink);
        sink.send(Bytes::from("no number\n")).await?;
        fails("22P02", sink.finish().await);
        // Dropped without an end: the driver tells the server that it failed.
        let sink = db.copy_in::<_, Bytes>("copy tokio_c (id) from stdin").await?;
        drop(Box::pin(sink));
        // Dropped before its end: the driver reads the rest.
        let out = db.copy_out("copy tokio_c to stdout").await?;
        drop(Box::pin(out));
        assert_eq!(number(db, "select count(*) from tokio_c", &[]).await?, 6000);
    }
    Ok(())
}

async fn large_objects(db: &mut Client) -> Outcome {
    let part: Vec<u8> = iter::repeat_n([0, 255, 92, 10], 4096).flatten().collect();
    let transaction = db.transaction().await?;
    let oid: u32 = transaction.query_one("select lo_create(0)", &[]).await?.get(0);
    let handle: i32 = transaction.query_one("select lo_open($1, 131072 | 262144)", &[&oid]).await?.get(0);
    for _ in 0..16 {
        transaction.query_one("select lowrite($1, $2)", &[&handle, &part]).await?;
    }
    transaction.query_one("select lo_lseek64($1, $2, 0)", &[&handle, &(part.len() as i64)]).await?;
    let row = transaction.query_one("select loread($1, $2)", &[&handle, &(part.len() as i32)]).await?;
    assert_eq!(row.get::<_, &[u8]>(0), part);
    transaction.query_one("select lo_unlink($1)", &[&oid]).await?;
    transaction.commit().await?;
    Ok(())
}

async fn big_results(db: &mut Client) -> Outcome {
    let rows = db.query("select g, repeat('x', 500) from generate_series(1, 20000) g", &[]).await?;
    assert_eq!(rows.len(), 20000);
    // Dropped before its end.
    let rows = db.query_raw("select g from generate_series(1, 20000) g", iter::empty::<i32>()).await?;
    drop(Box::pin(rows));
    let transaction = db.transaction().await?;
    let portal = transaction.bind("select g from generate_series(1, $1) g", &[&500]).await?;
    let other = transaction.bind("select g from generate_series(1, 10) g", &[]).await?;
    assert_eq!(transaction.query_portal(&portal, 77).await?.len(), 77);
    assert_eq!(transaction.query_portal(&other, 0).await?.len(), 10);
    assert_eq!(transaction.query_portal(&portal, 0).await?.len(), 423);
    transaction.commit().await?;
    let long = "y".repeat(2_000_000);
    assert_eq!(db.query_one("select $1::text", &[&long]).await?.get::<_, &str>(0).len(), 2_000_000);
    Ok(())
}

async fn cancels(db: &Client) -> Outcome {
    for _ in 0..2 {
        let token = db.cancel_token();
        let cancel = async {
            sleep(Duration::from_millis(150)).await;
            match tls() {
                None => token.cancel_query(NoTls).await,
                Some(tls) => token.cancel_query(tls).await,
            }
        };
        let (query, cancelled) = tokio::join!(db.query("select pg_sleep(20)", &[]), cancel);
        cancelled?;
        fails("57014", query);
        assert_eq!(number(db, "select 1::int8", &[]).await?, 1);
    }
    Ok(())
}

async fn sessions() -> Outcome {
    let (db, mut heard) = connect().await?;
    db.batch_execute("listen tokio_channel; create temp table tokio_temp (x int); select pg_advisory_lock(87)").await?;
    let (other, _) = connect().await?;
    assert!(!other.query_one("select pg_try_advisory_lock(87)", &[]).await?.get::<_, bool>(0));
    other.execute("select pg_notify('tokio_channel', $1)", &[&WORD]).await?;
    assert_eq!(tokio::time::timeout(Duration::from_secs(10), heard.recv()).await?.as_deref(), Some(WORD));
    db.execute("insert into tokio_temp values ($1)", &[&1]).await?;
    db.batch_execute("discard all").await?;
    Ok(())
}

async fn many_at_once() -> Outcome {
    let work = |n: i32| async move {
        let (mut db, _) = connect().await?;
        let own = db.prepare(&format!("select $1::int4 + {n}")).await?;
        for turn in 0..20 {
            let transaction = db.transaction().await?;
            assert_eq!(transaction.query_one("select $1::int4 * 2", &[&n]).await?.get::<_, i32>(0), 2 * n);
            transaction.execute("update tokio_t set amount = amount + 1 where id = $1", &[&n]).await?;
            transaction.commit().await?;
            assert_eq!(db.query_one(&own, &[&turn]).await?.get::<_, i32>(0), turn + n);
        }
        Outcome::Ok(())
    };
    for done in join_all((0..8).map(|n| tokio::spawn(work(n)))).await {
        done??;
    }
    Ok(())
}

async fn reconnects() -> Outcome {
    for n in 0..10_i64 {
        let (db, _) = connect().await?;
        for _ in 0..6 {
            assert_eq!(number(&db, "select $1::int8", &[&n]).await?, n);
        }
    }
    let (doomed, _) = connect().await?;
    fails("57P01", doomed.query("select pg_terminate_backend(pg_backend_pid())", &[]).await);
    let (db, _) = connect().await?;
    let (lost, _) = connect().await?;
    lost.batch_execute("begin; insert into tokio_t values (777, 'lost', 0)").await?;
    drop(lost);
    assert_eq!(number(&db, "select count(*) from tokio_t where id = 777", &[]).await?, 0);
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome {
    let (mut db, _) = connect().await?;
    types(&db).await?;
    transactions(&mut db).await?;
    mistakes(&db).await?;
    pipelines(&db).await?;
    copies(&db).await?;
    large_objects(&mut db).await?;
    big_results(&mut db).await?;
    cancels(&db).await?;
    let word = db.prepare("select word from tokio_t where id = $1").await?;
    for _ in 0..6 {
        db.query_one(&word, &[&5]).await?;
    }
    db.batch_execute("alter table tokio_t alter column amount type numeric").await?;
    assert_eq!(db.query_one(&word, &[&5]).await?.get::<_, &str>(0), WORD);
    db.batch_execute("alter table tokio_t alter column amount type float8").await?;
    sessions().await?;
    drop(db);
    many_at_once().await?;
    reconnects().await?;
    let (db, _) = connect().await?;
    db.batch_execute("drop table tokio_t, tokio_c").await?;
    Ok(())
}
