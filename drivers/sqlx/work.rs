//! sqlx at its defaults: every query is a named statement, kept in a cache; its migrations take a lock of the session.

use std::path::Path;
use std::time::Duration;

use futures_util::TryStreamExt;
use futures_util::future::try_join_all;
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row, query, query_as, query_scalar};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const WORD: &str = "Ünïcödé 漢字 🐘 'quoted' \"double\" back\\slash";
const INSERT: &str = "insert into sqlx_t values ($1, $2, $3)";

/// Host, port, user, password, database and TLS come from the PG* environment.
async fn connect() -> Outcome<PgConnection> {
    Ok(PgConnection::connect_with(&PgConnectOptions::new()).await?)
}

#[track_caller]
fn fails<T>(code: &str, seen: Result<T, sqlx::Error>) {
    let error = seen.err().expect("an error");
    let seen = error.as_database_error().and_then(|error| error.code()).map(|code| code.into_owned());
    assert_eq!(seen.as_deref(), Some(code), "{error}");
}

async fn types(db: &mut PgConnection) -> Outcome {
    let bytes: Vec<u8> = (0..=255).collect();
    let words = vec![Some(WORD.to_owned()), Some(String::new()), None, Some("{,}".to_owned())];
    for _ in 0..8 {
        let row = query("select $1::int8, $2::text, $3::bytea, $4::text[], $5::bool, $6::float8, $7::int4, $8::jsonb")
            .bind(1_i64 << 62)
            .bind(WORD)
            .bind(&bytes)
            .bind(&words)
            .bind(true)
            .bind(0.1_f64)
            .bind(None::<i32>)
            .bind(Json(vec![Some(1), None]))
            .fetch_one(&mut *db)
            .await?;
        assert_eq!(row.get::<i64, _>(0), 1 << 62);
        assert_eq!(row.get::<&str, _>(1), WORD);
        assert_eq!(row.get::<&[u8], _>(2), bytes);
        assert_eq!(row.get::<Vec<Option<String>>, _>(3), words);
        assert_eq!(row.get::<Option<i32>, _>(6), None);
        assert_eq!(row.get::<Json<Vec<Option<i32>>>, _>(7).0, [Some(1), None]);
    }
    Ok(())
}

async fn insert(db: &mut PgConnection, id: i32, word: &str) -> Result<(), sqlx::Error> {
    query(INSERT).bind(id).bind(word).bind(f64::from(id)).execute(db).await.map(drop)
}

async fn count(db: &mut PgConnection, sql: &'static str) -> Outcome<i64> {
    Ok(query_scalar(sql).fetch_one(db).await?)
}

async fn transactions(db: &mut PgConnection) -> Outcome {
    for turn in 0..2 {
        let mut transaction = db.begin_with("begin isolation level serializable").await?;
        for id in 0..12 {
            insert(&mut transaction, id, WORD).await?;
        }
        if turn == 0 {
            transaction.rollback().await?;
            assert_eq!(count(db, "select count(*) from sqlx_t").await?, 0);
            continue;
        }
        let mut inner = transaction.begin().await?;
        fails("23505", insert(&mut inner, 3, "twice").await);
        fails("25P02", inner.execute("select 1").await);
        inner.rollback().await?;
        query("update sqlx_t set amount = amount + 1 where id = $1").bind(3).execute(&mut *transaction).await?;
        transaction.commit().await?;
    }
    assert_eq!(count(db, "select amount::int8 from sqlx_t where id = 3").await?, 4);
    // Dropped without a word: rolled back.
    let mut transaction = db.begin().await?;
    transaction.execute("delete from sqlx_t").await?;
    drop(transaction);
    assert_eq!(count(db, "select count(*) from sqlx_t").await?, 12);
    Ok(())
}

async fn mistakes(db: &mut PgConnection) -> Outcome {
    for turn in 0..7 {
        fails("23505", insert(db, 1, "twice").await);
        fails("42601", query("selec 1").execute(&mut *db).await);
        fails("22012", query("select 12 / $1::int4").bind(0).fetch_one(&mut *db).await);
        let three: i32 = query_scalar("select 12 / $1::int4").bind(4).fetch_one(&mut *db).await?;
        assert_eq!(three, 3);
        fails("42P01", query("select * from sqlx_none").fetch_all(&mut *db).await);
        fails("22012", sqlx::raw_sql("insert into sqlx_t values (500, 'a', 0); select 1/0").execute(&mut *db).await);
        // Prepared, but not kept.
        let seen: i32 = query_scalar("select $1::int4").bind(turn).persistent(false).fetch_one(&mut *db).await?;
        assert_eq!(seen, turn);
    }
    assert_eq!(count(db, "select count(*) from sqlx_t where id = 500").await?, 0);
    // More different statements than its cache holds: the eldest are closed.
    for n in 0..150 {
        let sql = AssertSqlSafe(format!("select $1::int4 + {n}"));
        let seen: i32 = query_scalar(sql).bind(1).fetch_one(&mut *db).await?;
        assert_eq!(seen, n + 1);
    }
    db.clear_cached_statements().await?;
    Ok(())
}

async fn copies(db: &mut PgConnection) -> Outcome {
    let escaped = WORD.replace('\\', "\\\\");
    let text: String =
        (0..6000).map(|n| format!("{n}\t{}\n", if n % 2 == 1 { &escaped } else { "\\N" })).collect();
    let mut copy = db.copy_in_raw("copy sqlx_c from stdin").await?;
    for part in text.as_bytes().chunks(10_000) {
        copy.send(part).await?;
    }
    assert_eq!(copy.finish().await?, 6000);
    let out: Vec<_> = db.copy_out_raw("copy (select * from sqlx_c order by id) to stdout").await?.try_collect().await?;
    assert!(out.concat() == text.as_bytes());
    for _ in 0..3 {
        let mut copy = db.copy_in_raw("copy sqlx_c (id) from stdin").await?;
        copy.send("no number\n".as_bytes()).await?;
        fails("22P02", copy.finish().await);
        let mut copy = db.copy_in_raw("copy sqlx_c (id) from stdin").await?;
        copy.send("1\n".as_bytes()).await?;
        copy.abort("the client gives up").await?;
        assert_eq!(count(db, "select count(*) from sqlx_c").await?, 6000);
    }
    Ok(())
}

async fn large_objects(db: &mut PgConnection) -> Outcome {
    let part = [0, 255, 92, 10].repeat(4096);
    let mut transaction = db.begin().await?;
    let (handle,): (i32,) =
        query_as("select lo_open(lo_create(0), 131072 | 262144)").fetch_one(&mut *transaction).await?;
    for _ in 0..16 {
        query("select lowrite($1, $2)").bind(handle).bind(&part).execute(&mut *transaction).await?;
    }
    query("select lo_lseek64($1, $2, 0)").bind(handle).bind(part.len() as i64).execute(&mut *transaction).await?;
    let read: Vec<u8> =
        query_scalar("select loread($1, $2)").bind(handle).bind(part.len() as i32).fetch_one(&mut *transaction).await?;
    assert_eq!(read, part);
    transaction.rollback().await?;
    Ok(())
}

async fn big_results(db: &mut PgConnection) -> Outcome {
    let rows = query("select g, repeat('x', 500) from generate_series(1, $1) g").bind(20000).fetch_all(&mut *db).await?;
    assert_eq!(rows.len(), 20000);
    // Dropped before its end.
    let first = query("select g from generate_series(1, 20000) g").fetch(&mut *db).try_next().await?;
    assert_eq!(first.map(|row| row.get(0)), Some(1));
    let long: String = query_scalar("select $1::text").bind("y".repeat(2_000_000)).fetch_one(&mut *db).await?;
    assert_eq!(long.len(), 2_000_000);
    Ok(())
}

async fn sessions(db: &mut PgConnection) -> Outcome {
    let mut listener = PgListener::connect_with(&PgPool::connect_with(PgConnectOptions::new()).await?).await?;
    listener.listen("sqlx_channel").await?;
    db.execute("create temp table sqlx_temp (x int)").await?;
    db.execute("select pg_advisory_lock(88)").await?;
    let mut other = connect().await?;
    let got: bool = query_scalar("select pg_try_advisory_lock(88)").fetch_one(&mut other).await?;
    assert!(!got);
    query("select pg_notify('sqlx_channel', $1)").bind(WORD).execute(&mut other).await?;
    let notice = tokio::time::timeout(Duration::from_secs(10), listener.recv()).await??;
    assert_eq!(notice.payload(), WORD);
    db.execute("select pg_advisory_unlock(88)").await?;
    db.execute("drop table sqlx_temp").await?;
    other.close().await?;
    Ok(())
}

async fn many_at_once() -> Outcome {
    let pool = PgPoolOptions::new().max_connections(8).connect_with(PgConnectOptions::new()).await?;
    let work = |n: i32| {
        let pool = pool.clone();
        async move {
            for turn in 0..20 {
                let mut transaction = pool.begin().await?;
                let twice: i32 = query_scalar("select $1::int4 * 2").bind(n).fetch_one(&mut *transaction).await?;
                assert_eq!(twice, 2 * n);
                query("update sqlx_t set amount = amount + 1 where id = $1").bind(n).execute(&mut *transaction).await?;
                transaction.commit().await?;
                let own = AssertSqlSafe(format!("select $1::int4 + {n}"));
                let seen: i32 = query_scalar(own).bind(turn).fetch_one(&pool).await?;
                assert_eq!(seen, turn + n);
            }
            Outcome::Ok(())
        }
    };
    for done in try_join_all((0..12).map(|n| tokio::spawn(work(n)))).await? {
        done?;
    }
    pool.close().await;
    Ok(())
}

async fn reconnects() -> Outcome {
    for n in 0..10 {
        let mut db = connect().await?;
        for _ in 0..6 {
            let seen: i32 = query_scalar("select $1::int4").bind(n).fetch_one(&mut db).await?;
            assert_eq!(seen, n);
        }
        db.close().await?;
    }
    let mut doomed = connect().await?;
    fails("57P01", doomed.execute("select pg_terminate_backend(pg_backend_pid())").await);
    let mut db = connect().await?;
    let mut lost = connect().await?;
    lost.execute("begin").await?;
    insert(&mut lost, 777, "lost").await?;
    drop(lost);
    assert_eq!(count(&mut db, "select count(*) from sqlx_t where id = 777").await?, 0);
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome {
    let migrator = Migrator::new(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations"))).await?;
    let mut db = connect().await?;
    migrator.run(&mut db).await?;
    migrator.run(&mut db).await?;
    types(&mut db).await?;
    transactions(&mut db).await?;
    mistakes(&mut db).await?;
    copies(&mut db).await?;
    large_objects(&mut db).await?;
    big_results(&mut db).await?;
    let word = "select word from sqlx_t where id = $1";
    for turn in 0..8 {
        let seen: String = query_scalar(word).bind(5).fetch_one(&mut db).await?;
        assert_eq!(seen, WORD);
        if turn == 6 {
            db.execute("alter table sqlx_t alter column amount type float4").await?;
        }
    }
    db.execute("alter table sqlx_t alter column amount type float8").await?;
    sessions(&mut db).await?;
    db.close().await?;
    many_at_once().await?;
    reconnects().await?;
    let mut db = connect().await?;
    migrator.undo(&mut db, 0).await?;
    db.execute("drop table _sqlx_migrations").await?;
    db.close().await?;
    Ok(())
}
