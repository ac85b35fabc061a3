// node-postgres at its defaults: unnamed statements, statements with a name, its pool, and its streams.

import assert from 'node:assert/strict'
import { pipeline } from 'node:stream/promises'
import { Readable } from 'node:stream'
import pg from 'pg'
import Cursor from 'pg-cursor'
import QueryStream from 'pg-query-stream'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import largeObjects from 'pg-large-object'

const WORD = 'Ünïcödé 漢字 🐘 \'quoted\' "double" back\\slash'

// Host, port, user, password, database and TLS come from the PG* environment.
async function connect() {
  const db = new pg.Client()
  await db.connect()
  return db
}

const value = async (db, ...query) => Object.values((await db.query(...query)).rows[0])[0]
const fails = (code, work) => assert.rejects(work, (error) => error.code === code || assert.fail(`${code} wanted, not ${error}`))
const rest = (ms) => new Promise((done) => setTimeout(done, ms))

async function types(db) {
  const values = {
    int2: 32767, int4: -5, int8: '4611686018427387904', float8: 0.1, numeric: '12345678901234567890.123456789',
    text: WORD, bytea: Buffer.from(Array.from({ length: 256 }, (_, n) => n)), bool: true, uuid: '12345678-1234-5678-1234-567812345678',
    timestamptz: new Date('2024-02-29T12:30:01.123Z'), 'int4[]': [1, null, 3], 'text[]': [WORD, '', null, 'NULL', '{,}'],
    'int4[][]': [[1, 2], [3, 4]], jsonb: { a: [1, null, WORD] },
  }
  for (let turn = 0; turn < 6; turn++) {
    for (const [kind, wanted] of Object.entries(values)) {
      assert.deepEqual(await value(db, `select $1::${kind}`, [wanted]), wanted)
      assert.deepEqual(await value(db, { name: `type ${kind}`, text: `select $1::${kind}`, values: [wanted] }), wanted)
      assert.equal(await value(db, { name: `type ${kind}`, text: `select $1::${kind}`, values: [null] }), null)
    }
  }
}

async function transactions(db) {
  await db.query('drop table if exists node_t; create table node_t (id int primary key, word text, amount numeric)')
  const insert = { name: 'insert', text: 'insert into node_t values ($1, $2, $3)' }
  await db.query('begin')
  for (let id = 0; id < 12; id++) await db.query({ ...insert, values: [id, WORD, id] })
  await db.query('rollback')
  assert.equal(await value(db, 'select count(*)::int from node_t'), 0)
  await db.query('begin isolation level serializable')
  for (let id = 0; id < 12; id++) await db.query({ ...insert, values: [id, WORD, id] })
  await db.query('savepoint before')
  await fails('23505', () => db.query({ ...insert, values: [3, 'twice', 0] }))
  await fails('25P02', () => db.query('select 1'))
  await db.query('rollback to savepoint before')
  await db.query('update node_t set amount = amount + 1 where id = $1', [3])
  await db.query('commit')
  assert.equal(await value(db, 'select amount::int from node_t where id = 3'), 4)
}

async function mistakes(db) {
  for (let turn = 0; turn < 7; turn++) {
    await fails('23505', () => db.query({ name: 'insert', text: 'insert into node_t values ($1, $2, $3)', values: [1, 'twice', 0] }))
    await fails('42601', () => db.query('selec 1'))
    await fails('42601', () => db.query({ name: `broken ${turn}`, text: 'selec $1', values: [1] }))
    await fails('22012', () => db.query({ name: 'divide', text: 'select 1 / $1::int', values: [0] }))
    await fails('22P02', () => db.query('select $1::int', ['no number']))
    await fails('42P01', () => db.query('select * from node_none'))
    await fails('22012', () => db.query("insert into node_t values (500, 'a', 0); select 1/0; select 2"))
  }
  assert.equal(await value(db, 'select count(*)::int from node_t where id = 500'), 0)
  assert.equal(await value(db, { name: 'divide', text: 'select 1 / $1::int', values: [1] }), 1)
}

// Queries that do not wait for each other: the client keeps them in its line.
async function lines(db) {
  const named = (n) => value(db, { name: 'next', text: 'select $1::int + 1', values: [n] })
  const seen = await Promise.all(Array.from({ length: 100 }, (_, n) => (n % 2 ? named(n) : value(db, 'select $1::int + 1', [n]))))
  assert.deepEqual(seen, Array.from({ length: 100 }, (_, n) => n + 1))
  const mixed = await Promise.allSettled([named(1), db.query('selec 1'), named(2), db.query('select 1/0'), named(3)])
  assert.deepEqual(mixed.map((one) => one.status), ['fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled'])
  // One query with many statements has many results.
  const results = await db.query("select 1 as a; select 2 as b; update node_t set word = 'm' where id < 3")
  assert.deepEqual(results.map((one) => one.rowCount), [1, 1, 3])
}

async function copies(db) {
  await db.query('drop table if exists node_c; create table node_c (id int, word text)')
  const lines = Array.from({ length: 6000 }, (_, n) => `${n}\t${n % 2 ? WORD.replaceAll('\\', '\\\\') : '\\N'}\n`)
  await pipeline(Readable.from(lines), db.query(copyFrom('copy node_c from stdin')))
  const parts = []
  for await (const part of db.query(copyTo('copy (select * from node_c order by id) to stdout'))) parts.push(part)
  assert.ok(Buffer.concat(parts).toString() === lines.join(''))
  for (let turn = 0; turn < 3; turn++) {
    await fails('22P02', () => pipeline(Readable.from(['1\n', 'no number\n']), db.query(copyFrom('copy node_c (id) from stdin'))))
    const broken = async function* () {
      yield '1\n'
      throw new Error('the client gives up')
    }
    await assert.rejects(() => pipeline(Readable.from(broken()), db.query(copyFrom('copy node_c (id) from stdin'))))
    assert.equal(await value(db, 'select count(*)::int from node_c'), 6000)
  }
}

async function largeObject(db) {
  const part = Buffer.from(Array.from({ length: 16384 }, (_, n) => n % 256))
  const manager = new largeObjects.LargeObjectManager({ pg: db })
  await db.query('begin')
  const [oid, writer] = await manager.createAndWritableStreamAsync()
  await pipeline(Readable.from(Array.from({ length: 16 }, () => part)), writer)
  await db.query('commit')
  await db.query('begin')
  const [size, reader] = await manager.openAndReadableStreamAsync(oid)
  assert.equal(Number(size), 16 * part.length)
  const parts = []
  for await (const one of reader) parts.push(one)
  assert.ok(Buffer.concat(parts).equals(Buffer.concat(Array.from({ length: 16 }, () => part))))
  await manager.unlinkAsync(oid)
  await db.query('commit')
}

async function bigResults(db) {
  const { rows } = await db.query("select g, repeat('x', 500) from generate_series(1, 20000) g")
  assert.equal(rows.length, 20000)
  const cursor = db.query(new Cursor('select g from generate_series(1, $1) g', [1000]))
  assert.equal((await cursor.read(10)).length, 10)
  assert.equal((await cursor.read(100)).length, 100)
  await cursor.close()
  let sum = 0
  for await (const row of db.query(new QueryStream('select g from generate_series(1, $1::int) g', [2000], { batchSize: 77 }))) sum += row.g
  assert.equal(sum, 2001000)
  assert.equal((await value(db, 'select $1::text', ['y'.repeat(2_000_000)])).length, 2_000_000)
}

// The driver has no call for it but the one that its own pool of old used.
async function cancels(db) {
  for (let turn = 0; turn < 2; turn++) {
    const query = new pg.Query('select pg_sleep(20)')
    const ended = new Promise((done) => query.once('error', done))
    db.query(query)
    await rest(150)
    new pg.Client().cancel(db, query)
    assert.equal((await ended).code, '57014')
    assert.equal(await value(db, 'select 1'), 1)
  }
}

async function sessions(db) {
  const heard = new Promise((done) => db.once('notification', done))
  await db.query('listen node_channel')
  await db.query('create temp table node_temp (x int)')
  await db.query('select pg_advisory_lock(79)')
  const other = await connect()
  assert.equal(await value(other, 'select pg_try_advisory_lock(79)'), false)
  await other.query('select pg_notify($1, $2)', ['node_channel', WORD])
  await other.end()
  assert.equal((await heard).payload, WORD)
  await db.query('insert into node_temp values (1)')
  await db.query('unlisten *; select pg_advisory_unlock(79); drop table node_temp')
}

async function schemaChanges(db) {
  const query = { name: 'word', text: 'select word from node_t where id = $1', values: [5] }
  for (let turn = 0; turn < 6; turn++) await db.query(query)
  await db.query('alter table node_t add column extra int default 7; alter table node_t alter column amount type float8')
  assert.equal(await value(db, query), WORD)
}

async function manyAtOnce() {
  const pool = new pg.Pool()
  const work = async (number) => {
    for (let turn = 0; turn < 20; turn++) {
      const db = await pool.connect()
      await db.query('begin')
      const twice = { name: 'twice', text: 'select $1::int * 2 as twice, $2::text as turn', values: [number, `${turn}`] }
      assert.deepEqual((await db.query(twice)).rows, [{ twice: 2 * number, turn: `${turn}` }])
      await db.query({ name: 'more', text: 'update node_t set amount = amount + 1 where id = $1', values: [number] })
      await db.query('commit')
      db.release()
      // The same name for something else, on other connections of the same pool.
      assert.equal(await value(pool, { name: `own ${number}`, text: `select $1::int + ${number}`, values: [turn] }), turn + number)
    }
  }
  await Promise.all(Array.from({ length: 12 }, (_, number) => work(number)))
  await pool.end()
}

async function reconnects() {
  for (let number = 0; number < 10; number++) {
    const db = await connect()
    for (let turn = 0; turn < 6; turn++) assert.equal(await value(db, { name: 'n', text: 'select $1::int', values: [number] }), number)
    await db.end()
  }
  const doomed = await connect()
  doomed.on('error', () => {})
  await fails('57P01', () => doomed.query('select pg_terminate_backend(pg_backend_pid())'))
  const db = await connect()
  const lost = await connect()
  lost.on('error', () => {})
  await lost.query('begin')
  await lost.query("insert into node_t values (777, 'lost', 0)")
  lost.connection.stream.destroy()
  assert.equal(await value(db, 'select count(*)::int from node_t where id = 777'), 0)
  await db.end()
}

const db = await connect()
await types(db)
await transactions(db)
await mistakes(db)
await lines(db)
await copies(db)
await largeObject(db)
await bigResults(db)
await cancels(db)
await schemaChanges(db)
await sessions(db)
await db.end()
await manyAtOnce()
await reconnects()
const last = await connect()
await last.query('drop table node_t, node_c')
await last.end()
