// Go's lib/pq by way of database/sql: a query with parameters is prepared, without a name, and its pool opens what it needs.
package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lib/pq"
)

const word = "Ünïcödé 漢字 🐘 'quoted' \"double\" back\\slash"

// Host, port, user, password, database and TLS come from the PG* environment.
func open() *sql.DB {
	db, err := sql.Open("postgres", "")
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
	told, ok := err.(*pq.Error)
	if !ok || string(told.Code) != code {
		panic(fmt.Sprintf("%s wanted, not %v", code, err))
	}
}

type asker interface {
	QueryRow(query string, args ...interface{}) *sql.Row
}

func number(db asker, query string, args ...interface{}) (seen int) {
	must(db.QueryRow(query, args...).Scan(&seen))
	return
}

func text(db asker, query string, args ...interface{}) (seen string) {
	must(db.QueryRow(query, args...).Scan(&seen))
	return
}

func types(db *sql.DB) {
	all := make([]byte, 256)
	for n := range all {
		all[n] = byte(n)
	}
	for turn := 0; turn < 8; turn++ {
		check(number(db, "select $1::int8", int64(1)<<62), 1<<62)
		check(text(db, "select $1::text", word), word)
		check(text(db, "select $1::numeric", "12345678901234567890.123456789"), "12345678901234567890.123456789")
		var raw []byte
		must(db.QueryRow("select $1::bytea", all).Scan(&raw))
		check(bytes.Equal(raw, all), true)
		var none sql.NullString
		must(db.QueryRow("select $1::text", nil).Scan(&none))
		check(none.Valid, false)
		var words []sql.NullString
		must(db.QueryRow("select $1::text[]", pq.Array([]sql.NullString{{String: word, Valid: true}, {}, {String: "{,}", Valid: true}})).Scan(pq.Array(&words)))
		check(words[0].String+words[2].String, word+"{,}")
		check(words[1].Valid, false)
		var at time.Time
		moment := time.Date(2024, 2, 29, 12, 30, 1, 123456000, time.UTC)
		must(db.QueryRow("select $1::timestamptz", moment).Scan(&at))
		check(at.Equal(moment), true)
	}
}

func transactions(db *sql.DB) {
	_, err := db.Exec("set client_min_messages = warning; drop table if exists gopq_t; create table gopq_t (id int primary key, word text, amount numeric)")
	must(err)
	for turn := 0; turn < 2; turn++ {
		tx, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelSerializable})
		must(err)
		insert, err := tx.Prepare("insert into gopq_t values ($1, $2, $3)")
		must(err)
		for id := 0; id < 12; id++ {
			_, err = insert.Exec(id, word, id)
			must(err)
		}
		if turn == 0 {
			must(tx.Rollback())
			check(number(db, "select count(*) from gopq_t"), 0)
			continue
		}
		_, err = tx.Exec("savepoint before")
		must(err)
		_, err = insert.Exec(3, "twice", 0)
		fails("23505", err)
		_, err = tx.Exec("select 1")
		fails("25P02", err)
		_, err = tx.Exec("rollback to savepoint before")
		must(err)
		_, err = tx.Exec("update gopq_t set amount = amount + 1 where id = $1", 3)
		must(err)
		must(insert.Close())
		must(tx.Commit())
	}
	check(number(db, "select amount::int from gopq_t where id = 3"), 4)
}

func mistakes(db *sql.DB) {
	// A prepared statement of database/sql is prepared again on each connection of its pool.
	divide, err := db.Prepare("select 12 / $1::int")
	must(err)
	for turn := 0; turn < 7; turn++ {
		_, err := db.Exec("insert into gopq_t values ($1, 'twice', 0)", 1)
		fails("23505", err)
		_, err = db.Exec("selec 1")
		fails("42601", err)
		_, err = db.Prepare("selec $1")
		fails("42601", err)
		_, err = divide.Exec(0)
		fails("22012", err)
		check(number(rowOf{divide}, "", 4), 3)
		_, err = db.Exec("select * from gopq_none")
		fails("42P01", err)
	}
	must(divide.Close())
}

type rowOf struct{ statement *sql.Stmt }

func (one rowOf) QueryRow(_ string, args ...interface{}) *sql.Row { return one.statement.QueryRow(args...) }

func copies(db *sql.DB) {
	_, err := db.Exec("drop table if exists gopq_c; create table gopq_c (id int, word text)")
	must(err)
	for turn := 0; turn < 3; turn++ {
		tx, err := db.Begin()
		must(err)
		in, err := tx.Prepare(pq.CopyIn("gopq_c", "id", "word"))
		must(err)
		for n := 0; n < 3000; n++ {
			_, err = in.Exec(n, word)
			must(err)
		}
		_, err = in.Exec()
		must(err)
		must(in.Close())
		must(tx.Commit())
		tx, err = db.Begin()
		must(err)
		in, err = tx.Prepare(pq.CopyIn("gopq_c", "id"))
		must(err)
		_, err = in.Exec("no number")
		must(err)
		_, err = in.Exec()
		fails("22P02", err)
		must(tx.Rollback())
	}
	check(number(db, "select count(*) from gopq_c where word = $1", word), 9000)
}

func largeObjects(db *sql.DB) {
	part := bytes.Repeat([]byte{0, 255, 92, 10}, 4096)
	tx, err := db.Begin()
	must(err)
	oid := number(tx, "select lo_create(0)")
	handle := number(tx, "select lo_open($1, 131072 | 262144)", oid)
	for n := 0; n < 16; n++ {
		check(number(tx, "select lowrite($1, $2)", handle, part), len(part))
	}
	number(tx, "select lo_lseek($1, $2, 0)", handle, len(part))
	var read []byte
	must(tx.QueryRow("select loread($1, $2)", handle, len(part)).Scan(&read))
	check(bytes.Equal(read, part), true)
	number(tx, "select lo_unlink($1)", oid)
	must(tx.Commit())
}

func bigResults(db *sql.DB) {
	rows, err := db.Query("select g, repeat('x', 500) from generate_series(1, $1::int) g", 20000)
	must(err)
	count := 0
	for rows.Next() {
		count++
	}
	must(rows.Err())
	check(count, 20000)
	// Closed before its end.
	rows, err = db.Query("select g from generate_series(1, 20000) g")
	must(err)
	check(rows.Next(), true)
	must(rows.Close())
	check(len(text(db, "select $1::text", strings.Repeat("y", 2000000))), 2000000)
	// Several results of one query.
	rows, err = db.Query("select 1; select 2")
	must(err)
	check(rows.Next(), true)
	check(rows.Next(), false)
	check(rows.NextResultSet(), true)
	check(rows.Next(), true)
	must(rows.Close())
}

func cancels(db *sql.DB) {
	for turn := 0; turn < 2; turn++ {
		ctx, cancel := context.WithTimeout(context.Background(), 150*time.Millisecond)
		_, err := db.ExecContext(ctx, "select pg_sleep($1)", 20)
		if told, ok := err.(*pq.Error); err != context.DeadlineExceeded && !(ok && told.Code == "57014") {
			panic(err)
		}
		cancel()
		ctx, cancel = context.WithTimeout(context.Background(), 150*time.Millisecond)
		tx, err := db.BeginTx(ctx, nil)
		must(err)
		if _, err = tx.ExecContext(ctx, "select pg_sleep(20)"); err == nil {
			panic("not cancelled")
		}
		cancel()
		check(number(db, "select 1"), 1)
	}
}

func sessions(db *sql.DB) {
	listener := pq.NewListener("", time.Second, time.Minute, nil)
	must(listener.Listen("gopq_channel"))
	must(listener.Ping())
	_, err := db.Exec("select pg_notify('gopq_channel', $1)", word)
	must(err)
	select {
	case notice := <-listener.Notify:
		check(notice.Extra, word)
	case <-time.After(10 * time.Second):
		panic("nothing heard")
	}
	must(listener.Close())
	one, err := db.Conn(context.Background())
	must(err)
	_, err = one.ExecContext(context.Background(), "create temp table gopq_temp (x int); select pg_advisory_lock(85)")
	must(err)
	var got bool
	must(db.QueryRow("select pg_try_advisory_lock(85)").Scan(&got))
	check(got, false)
	_, err = one.ExecContext(context.Background(), "select pg_advisory_unlock(85); drop table gopq_temp")
	must(err)
	must(one.Close())
}

func manyAtOnce(db *sql.DB) {
	db.SetMaxOpenConns(8)
	var all sync.WaitGroup
	for n := 0; n < 12; n++ {
		all.Add(1)
		go func(n int) {
			defer all.Done()
			own, err := db.Prepare(fmt.Sprintf("select $1::int + %d", n))
			must(err)
			for turn := 0; turn < 20; turn++ {
				tx, err := db.Begin()
				must(err)
				check(number(tx, "select $1::int * 2", n), 2*n)
				_, err = tx.Exec("update gopq_t set amount = amount + 1 where id = $1", n)
				must(err)
				must(tx.Commit())
				check(number(rowOf{own}, "", turn), turn+n)
			}
			must(own.Close())
		}(n)
	}
	all.Wait()
}

func reconnects() {
	for n := 0; n < 10; n++ {
		db := open()
		for turn := 0; turn < 6; turn++ {
			check(number(db, "select $1::int", n), n)
		}
		must(db.Close())
	}
	db := open()
	// It tells its caller no more than that the connection is bad.
	_, err := db.Exec("select pg_terminate_backend(pg_backend_pid())")
	check(err != nil, true)
	check(number(db, "select 1"), 1)
	lost := open()
	ctx, cancel := context.WithCancel(context.Background())
	tx, err := lost.BeginTx(ctx, nil)
	must(err)
	_, err = tx.Exec("insert into gopq_t values (777, 'lost', 0)")
	must(err)
	cancel()
	must(lost.Close())
	check(number(db, "select count(*) from gopq_t where id = 777"), 0)
	must(db.Close())
}

func main() {
	db := open()
	types(db)
	transactions(db)
	mistakes(db)
	copies(db)
	largeObjects(db)
	bigResults(db)
	cancels(db)
	select_, err := db.Prepare("select word from gopq_t where id = $1")
	must(err)
	for turn := 0; turn < 6; turn++ {
		check(text(rowOf{select_}, "", 5), word)
	}
	_, err = db.Exec("alter table gopq_t alter column amount type float8")
	must(err)
	check(text(rowOf{select_}, "", 5), word)
	must(select_.Close())
	sessions(db)
	manyAtOnce(db)
	reconnects()
	_, err = db.Exec("drop table gopq_t, gopq_c")
	must(err)
	must(db.Close())
}
