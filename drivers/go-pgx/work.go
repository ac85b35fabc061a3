// Go's pgx at its defaults: every query is a named statement, kept in a cache; batches are pipelines.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgconn"
	"github.com/jackc/pgtype"
	"github.com/jackc/pgx/v4"
	"github.com/jackc/pgx/v4/pgxpool"
)

const word = "Ünïcödé 漢字 🐘 'quoted' \"double\" back\\slash"

var ctx = context.Background()

// Host, port, user, password, database and TLS come from the PG* environment.
func connect() *pgx.Conn {
	db, err := pgx.Connect(ctx, "")
	must(err)
	return db
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func check(seen, wanted interface{}) {
	if a, b := fmt.Sprintf("%#v", seen), fmt.Sprintf("%#v", wanted); a != b {
		panic(fmt.Sprintf("%.300s wanted, not %.300s", b, a))
	}
}

func fails(code string, err error) {
	var told *pgconn.PgError
	if !errors.As(err, &told) || told.Code != code {
		panic(fmt.Sprintf("%s wanted, not %v", code, err))
	}
}

type asker interface {
	QueryRow(ctx context.Context, query string, args ...interface{}) pgx.Row
	Exec(ctx context.Context, query string, args ...interface{}) (pgconn.CommandTag, error)
}

func number(db asker, query string, args ...interface{}) (seen int) {
	must(db.QueryRow(ctx, query, args...).Scan(&seen))
	return
}

func text(db asker, query string, args ...interface{}) (seen string) {
	must(db.QueryRow(ctx, query, args...).Scan(&seen))
	return
}

func run(db asker, query string, args ...interface{}) {
	_, err := db.Exec(ctx, query, args...)
	must(err)
}

func failing(db asker, query string, args ...interface{}) error {
	_, err := db.Exec(ctx, query, args...)
	return err
}

func types(db *pgx.Conn) {
	all := make([]byte, 256)
	for n := range all {
		all[n] = byte(n)
	}
	for turn := 0; turn < 6; turn++ {
		check(number(db, "select $1::int8", int64(1)<<62), 1<<62)
		check(number(db, "select $1::int2", int16(-5)), -5)
		check(text(db, "select $1::text", word), word)
		var raw []byte
		must(db.QueryRow(ctx, "select $1::bytea", all).Scan(&raw))
		check(bytes.Equal(raw, all), true)
		var none *string
		must(db.QueryRow(ctx, "select $1::text", nil).Scan(&none))
		check(none == nil, true)
		var words pgtype.TextArray
		a, c := word, "{,}"
		must(words.Set([]*string{&a, nil, &c}))
		var seen pgtype.TextArray
		must(db.QueryRow(ctx, "select $1::text[]", &words).Scan(&seen))
		check(seen.Elements[0].String+seen.Elements[2].String, word+"{,}")
		check(seen.Elements[1].Status, pgtype.Null)
		var many []int32
		must(db.QueryRow(ctx, "select $1::int[]", []int32{1, 2, 3}).Scan(&many))
		check(many, []int32{1, 2, 3})
		var at time.Time
		moment := time.Date(2024, 2, 29, 12, 30, 1, 123456000, time.UTC)
		must(db.QueryRow(ctx, "select $1::timestamptz", moment).Scan(&at))
		check(at.Equal(moment), true)
		var document map[string]interface{}
		must(db.QueryRow(ctx, "select $1::jsonb", map[string]interface{}{"a": word}).Scan(&document))
		check(document["a"], word)
	}
}

func transactions(db *pgx.Conn) {
	run(db, "drop table if exists gopgx_t")
	run(db, "create table gopgx_t (id int primary key, word text, amount numeric)")
	for turn := 0; turn < 2; turn++ {
		tx, err := db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.Serializable})
		must(err)
		for id := 0; id < 12; id++ {
			run(tx, "insert into gopgx_t values ($1, $2, $3)", id, word, id)
		}
		if turn == 0 {
			must(tx.Rollback(ctx))
			check(number(db, "select count(*) from gopgx_t"), 0)
			continue
		}
		// A transaction in a transaction is a savepoint.
		inner, err := tx.Begin(ctx)
		must(err)
		fails("23505", failing(inner, "insert into gopgx_t values ($1, $2, $3)", 3, "twice", 0))
		fails("25P02", failing(inner, "select 1"))
		must(inner.Rollback(ctx))
		run(tx, "update gopgx_t set amount = amount + 1 where id = $1", 3)
		must(tx.Commit(ctx))
	}
	check(number(db, "select amount::int from gopgx_t where id = 3"), 4)
}

func mistakes(db *pgx.Conn) {
	_, err := db.Prepare(ctx, "divide", "select 12 / $1::int")
	must(err)
	for turn := 0; turn < 7; turn++ {
		fails("23505", failing(db, "insert into gopgx_t values ($1, $2, $3)", 1, "twice", 0))
		fails("42601", failing(db, "selec 1"))
		_, err := db.Prepare(ctx, fmt.Sprintf("broken %d", turn), "selec $1")
		fails("42601", err)
		fails("22012", failing(db, "divide", 0))
		check(number(db, "divide", 4), 3)
		fails("42P01", failing(db, "select * from gopgx_none"))
		fails("22012", failing(db, "insert into gopgx_t values (500, 'a', 0); select 1/0"))
		check(number(db, "select $1::int", pgx.QuerySimpleProtocol(true), turn), turn)
		check(number(db, "select $1::int", pgx.QueryResultFormats{pgx.TextFormatCode}, turn), turn)
	}
	must(db.Deallocate(ctx, "divide"))
	check(number(db, "select count(*) from gopgx_t where id = 500"), 0)
	// More different statements than its cache holds.
	for n := 0; n < 600; n++ {
		check(number(db, fmt.Sprintf("select $1::int + %d", n), 1), n+1)
	}
	check(number(db, "select $1::int + 0", 1), 1)
}

func batches(db *pgx.Conn) {
	for turn := 0; turn < 3; turn++ {
		batch := &pgx.Batch{}
		for n := 0; n < 100; n++ {
			batch.Queue("select $1::int + 1", n)
			batch.Queue("update gopgx_t set word = word where id = $1", n)
		}
		results := db.SendBatch(ctx, batch)
		for n := 0; n < 100; n++ {
			var seen int
			must(results.QueryRow().Scan(&seen))
			check(seen, n+1)
			_, err := results.Exec()
			must(err)
		}
		must(results.Close())
		batch = &pgx.Batch{}
		batch.Queue("insert into gopgx_t values (900, 'a', 0)")
		batch.Queue("select 1 / $1::int", 0)
		batch.Queue("insert into gopgx_t values (901, 'a', 0)")
		results = db.SendBatch(ctx, batch)
		_, err := results.Exec()
		must(err)
		_, err = results.Exec()
		fails("22012", err)
		_ = results.Close()
		check(number(db, "select count(*) from gopgx_t where id >= 900"), 0)
	}
}

func copies(db *pgx.Conn) {
	run(db, "drop table if exists gopgx_c")
	run(db, "create table gopgx_c (id int, word text)")
	for turn := 0; turn < 3; turn++ {
		count, err := db.CopyFrom(ctx, pgx.Identifier{"gopgx_c"}, []string{"id", "word"},
			pgx.CopyFromSlice(3000, func(n int) ([]interface{}, error) { return []interface{}{n, word}, nil }))
		must(err)
		check(count, int64(3000))
		_, err = db.CopyFrom(ctx, pgx.Identifier{"gopgx_c"}, []string{"id", "word"},
			pgx.CopyFromSlice(10, func(n int) ([]interface{}, error) { return nil, errors.New("the client gives up") }))
		check(err != nil, true)
		_, err = db.PgConn().CopyFrom(ctx, strings.NewReader("no number\n"), "copy gopgx_c (id) from stdin")
		fails("22P02", err)
		var out bytes.Buffer
		_, err = db.PgConn().CopyTo(ctx, &out, "copy (select id from gopgx_c order by id) to stdout")
		must(err)
		check(strings.Count(out.String(), "\n"), 3000*(turn+1))
	}
}

func largeObjects(db *pgx.Conn) {
	part := bytes.Repeat([]byte{0, 255, 92, 10}, 4096)
	tx, err := db.Begin(ctx)
	must(err)
	objects := tx.LargeObjects()
	oid, err := objects.Create(ctx, 0)
	must(err)
	object, err := objects.Open(ctx, oid, pgx.LargeObjectModeRead|pgx.LargeObjectModeWrite)
	must(err)
	for n := 0; n < 16; n++ {
		_, err = object.Write(part)
		must(err)
	}
	_, err = object.Seek(int64(len(part)), 0)
	must(err)
	read := make([]byte, len(part))
	_, err = object.Read(read)
	must(err)
	check(bytes.Equal(read, part), true)
	must(object.Close())
	must(objects.Unlink(ctx, oid))
	must(tx.Commit(ctx))
}

func bigResults(db *pgx.Conn) {
	rows, err := db.Query(ctx, "select g, repeat('x', 500) from generate_series(1, $1::int) g", 20000)
	must(err)
	count := 0
	for rows.Next() {
		count++
	}
	must(rows.Err())
	check(count, 20000)
	// Closed before its end.
	rows, err = db.Query(ctx, "select g from generate_series(1, 20000) g")
	must(err)
	check(rows.Next(), true)
	rows.Close()
	check(len(text(db, "select $1::text", strings.Repeat("y", 2000000))), 2000000)
}

// A context that ends closes the connection, behind a cancel request of its own.
func cancels() {
	for turn := 0; turn < 2; turn++ {
		db := connect()
		limited, cancel := context.WithTimeout(ctx, 150*time.Millisecond)
		_, err := db.Exec(limited, "select pg_sleep(20)")
		check(err != nil && db.IsClosed(), true)
		cancel()
		db = connect()
		go func() {
			time.Sleep(150 * time.Millisecond)
			must(db.PgConn().CancelRequest(ctx))
		}()
		fails("57014", failing(db, "select pg_sleep(20)"))
		check(number(db, "select 1"), 1)
		must(db.Close(ctx))
	}
}

func sessions(db *pgx.Conn) {
	run(db, "listen gopgx_channel")
	run(db, "create temp table gopgx_temp (x int)")
	run(db, "select pg_advisory_lock(86)")
	other := connect()
	var got bool
	must(other.QueryRow(ctx, "select pg_try_advisory_lock(86)").Scan(&got))
	check(got, false)
	run(other, "select pg_notify('gopgx_channel', $1)", word)
	must(other.Close(ctx))
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	notice, err := db.WaitForNotification(limited)
	must(err)
	cancel()
	check(notice.Payload, word)
	run(db, "insert into gopgx_temp values ($1)", 1)
	run(db, "unlisten *")
	run(db, "select pg_advisory_unlock(86)")
	run(db, "drop table gopgx_temp")
}

func manyAtOnce() {
	config, err := pgxpool.ParseConfig("")
	must(err)
	config.MaxConns = 8
	pool, err := pgxpool.ConnectConfig(ctx, config)
	must(err)
	var all sync.WaitGroup
	for n := 0; n < 12; n++ {
		all.Add(1)
		go func(n int) {
			defer all.Done()
			for turn := 0; turn < 20; turn++ {
				tx, err := pool.Begin(ctx)
				must(err)
				check(number(tx, "select $1::int * 2", n), 2*n)
				run(tx, "update gopgx_t set amount = amount + 1 where id = $1", n)
				must(tx.Commit(ctx))
				check(number(pool, fmt.Sprintf("select $1::int + %d", n), turn), turn+n)
			}
		}(n)
	}
	all.Wait()
	pool.Close()
}

func reconnects() {
	for n := 0; n < 10; n++ {
		db := connect()
		for turn := 0; turn < 6; turn++ {
			check(number(db, "select $1::int", n), n)
		}
		must(db.Close(ctx))
	}
	doomed := connect()
	fails("57P01", failing(doomed, "select pg_terminate_backend(pg_backend_pid())"))
	db, lost := connect(), connect()
	run(lost, "begin")
	run(lost, "insert into gopgx_t values (777, 'lost', 0)")
	must(lost.PgConn().Conn().Close())
	check(number(db, "select count(*) from gopgx_t where id = 777"), 0)
	must(db.Close(ctx))
}

func main() {
	db := connect()
	types(db)
	transactions(db)
	mistakes(db)
	batches(db)
	copies(db)
	largeObjects(db)
	bigResults(db)
	cancels()
	for turn := 0; turn < 6; turn++ {
		check(text(db, "select word from gopgx_t where id = $1", 5), word)
	}
	run(db, "alter table gopgx_t alter column amount type float8")
	check(text(db, "select word from gopgx_t where id = $1", 5), word)
	sessions(db)
	must(db.Close(ctx))
	manyAtOnce()
	reconnects()
	db = connect()
	run(db, "drop table gopgx_t, gopgx_c")
	must(db.Close(ctx))
}
