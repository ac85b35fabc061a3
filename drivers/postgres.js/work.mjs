// postgres.js at its defaults: each query is a named statement, sent without waiting for the one before.

import assert from 'node:assert/strict'
import { pipeline } from 'node:stream/promises'
import { Readable } from 'node:stream'
import postgres from 'postgres'

const WORD = 'Ünïcödé 漢字 🐘 \'quoted\' "double" back\\slash'

// Host, port, user, password and database come from the PG* environment; of TLS it reads nothing there.
const connect = (options = {}) =>
  postgres({ ssl: process.env.PGSSLMODE === 'disable' ? false : process.env.PGSSLMODE, onnotice: () => {}, ...options })

const fails = (code, work) => assert.rejects(work, (error) => error.code === code || assert.fail(`${code} wanted, not ${error}`))
const value = async (query) => Object.values((await query)[0])[0]
const rest = (ms) => new Promise((done) => setTimeout(done, ms))

// It does not read a NULL inside of an array.
async function types(sql) {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, n) => n))
  for (let turn = 0; turn < 6; turn++) {
    const [row] = await sql`select ${32767}::int2 as a, ${-5}::int4 as b, ${'4611686018427387904'}::int8 as c, ${0.1}::float8 as d,
      ${'12345678901234567890.123456789'}::numeric as e, ${WORD}::text as f, ${bytes}::bytea as g, ${true}::bool as h,
      ${'12345678-1234-5678-1234-567812345678'}::uuid as i, ${new Date('2024-02-29T12:30:01.123Z')}::timestamptz as j,
      ${[1, 2, 3]}::int4[] as k, ${[WORD, '', '{,}']}::text[] as l, ${{ a: [1, null, WORD] }}::jsonb as m, ${null}::int as n`
    assert.deepEqual({ ...row }, {
      a: 32767, b: -5, c: '4611686018427387904', d: 0.1, e: '12345678901234567890.123456789', f: WORD, g: bytes, h: true,
      i: '12345678-1234-5678-1234-567812345678', j: new Date('2024-02-29T12:30:01.123Z'), k: [1, 2, 3],
      l: [WORD, '', '{,}'], m: { a: [1, null, WORD] }, n: null,
    })
  }
}

async function transactions(sql) {
  await sql`drop table if exists postgresjs_t`
  await sql`create table postgresjs_t (id int primary key, word text, amount numeric)`
  const insert = (sql, id, word = WORD) => sql`insert into postgresjs_t ${sql({ id, word, amount: id })}`
  await assert.rejects(sql.begin(async (sql) => {
    for (let id = 0; id < 12; id++) await insert(sql, id)
    throw new Error('so it is rolled back')
  }), /so it is/)
  assert.equal(await value(sql`select count(*)::int from postgresjs_t`), 0)
  await sql.begin('isolation level serializable', async (sql) => {
    await Promise.all(Array.from({ length: 12 }, (_, id) => insert(sql, id)))
    await fails('23505', sql.savepoint((sql) => insert(sql, 3, 'twice')))
    await sql`update postgresjs_t set amount = amount + 1 where id = ${3}`
  })
  assert.equal(await value(sql`select amount::int from postgresjs_t where id = 3`), 4)
  await sql`insert into postgresjs_t ${sql(Array.from({ length: 300 }, (_, n) => ({ id: 100 + n, word: 'm', amount: n })))}`
  await fails('22012', sql.begin((sql) => [sql`insert into postgresjs_t ${sql({ id: 900, word: 'x', amount: 0 })}`, sql`select 1 / ${0}::int`]))
  assert.equal(await value(sql`select count(*)::int from postgresjs_t where id = 900`), 0)
}

async function mistakes(sql) {
  for (let turn = 0; turn < 7; turn++) {
    await fails('23505', sql`insert into postgresjs_t ${sql({ id: 1, word: 'twice', amount: 0 })}`)
    await fails('42601', sql`selec 1`)
    await fails('22012', sql`select 1 / ${0}::int`)
    await fails('22P02', sql`select ${'no number'}::text::int`)
    await fails('42P01', sql`select * from postgresjs_none`)
    await fails('22012', sql.unsafe('select 1/0; select 2'))
  }
  assert.equal(await value(sql`select 6 / ${2}::int`), 3)
}

// Many queries on one connection, none of which waits for the one before.
async function pipelines() {
  const sql = connect({ max: 1 })
  for (let turn = 0; turn < 3; turn++) {
    const seen = await Promise.all(Array.from({ length: 200 }, (_, n) => value(n % 3 ? sql`select ${n}::int + 1` : sql`select ${n}::int + 1 as other`)))
    assert.deepEqual(seen, Array.from({ length: 200 }, (_, n) => n + 1))
    const mixed = await Promise.allSettled([sql`select 1`, sql`selec 1`, sql`select ${2}::int`, sql`select 1 / ${0}::int`, sql`select 3`.simple()])
    assert.deepEqual(mixed.map((one) => one.status), ['fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled'])
  }
  await sql.end()
}

async function copies(sql) {
  await sql`drop table if exists postgresjs_c`
  await sql`create table postgresjs_c (id int, word text)`
  const lines = Array.from({ length: 6000 }, (_, n) => `${n}\t${n % 2 ? WORD.replaceAll('\\', '\\\\') : '\\N'}\n`)
  await pipeline(Readable.from(lines), await sql`copy postgresjs_c from stdin`.writable())
  // Below the high-water mark of its stream: with more it may leave its socket paused, and wait for ever.
  const parts = []
  for await (const part of await sql`copy (select * from postgresjs_c where id < 200 order by id) to stdout`.readable()) parts.push(part)
  assert.ok(Buffer.concat(parts).toString() === lines.slice(0, 200).join(''))
  assert.equal(await value(sql`select count(*)::int from postgresjs_c`), 6000)
}

async function largeObjects(sql) {
  const part = Buffer.from(Array.from({ length: 16384 }, (_, n) => n % 256))
  const object = await sql.largeObject()
  for (let turn = 0; turn < 16; turn++) await object.write(part)
  await object.seek(part.length)
  assert.ok((await object.read(part.length))[0].data.equals(part))
  assert.equal(Number((await object.size())[0].size), 16 * part.length)
  await object.close()
}

async function bigResults(sql) {
  assert.equal((await sql`select g, repeat('x', 500) from generate_series(1, 20000) g`).length, 20000)
  let sum = 0
  for await (const rows of sql`select g from generate_series(1, 2000) g`.cursor(77)) sum += rows.reduce((all, row) => all + row.g, 0)
  assert.equal(sum, 2001000)
  let seen = 0
  for await (const [row] of sql`select g from generate_series(1, 2000) g`.cursor()) if ((seen = row.g) === 10) break
  assert.equal(seen, 10)
  sum = 0
  await sql`select g from generate_series(1, 2000) g`.forEach((row) => (sum += row.g))
  assert.equal(sum, 2001000)
  assert.equal((await value(sql`select ${'y'.repeat(2_000_000)}::text`)).length, 2_000_000)
  assert.deepEqual((await sql`select ${1}::int as a, ${WORD}::text as b`.describe()).columns.map((one) => one.name), ['a', 'b'])
}

async function cancels(sql) {
  for (let turn = 0; turn < 2; turn++) {
    const query = sql`select pg_sleep(${20})`
    query.execute()
    await rest(150)
    query.cancel()
    await fails('57014', query)
    assert.equal(await value(sql`select 1`), 1)
  }
}

async function sessions(sql) {
  let hear
  const heard = new Promise((done) => (hear = done))
  const { unlisten } = await sql.listen('postgresjs_channel', hear)
  await sql.notify('postgresjs_channel', WORD)
  assert.equal(await heard, WORD)
  await unlisten()
  const reserved = await sql.reserve()
  await reserved`create temp table postgresjs_temp (x int)`
  await reserved`insert into postgresjs_temp values (1)`
  await reserved`select pg_advisory_lock(80)`
  assert.equal(await value(sql`select pg_try_advisory_lock(80)`), false)
  await reserved`select pg_advisory_unlock(80)`
  await reserved`drop table postgresjs_temp`
  reserved.release()
}

async function manyAtOnce(sql) {
  const work = async (number) => {
    for (let turn = 0; turn < 20; turn++) {
      await sql.begin(async (sql) => {
        assert.deepEqual({ ...(await sql`select ${number}::int * 2 as twice, ${`${turn}`}::text as turn`)[0] }, { twice: 2 * number, turn: `${turn}` })
        await sql`update postgresjs_t set amount = amount + 1 where id = ${number}`
      })
      assert.equal(await value(sql`select ${turn}::int`), turn)
    }
  }
  await Promise.all(Array.from({ length: 12 }, (_, number) => work(number)))
}

async function reconnects(sql) {
  for (let number = 0; number < 10; number++) {
    const one = connect({ max: 1 })
    for (let turn = 0; turn < 6; turn++) assert.equal(await value(one`select ${number}::int`), number)
    await one.end()
  }
  const doomed = connect({ max: 1 })
  await fails('57P01', doomed`select pg_terminate_backend(pg_backend_pid())`)
  assert.equal(await value(doomed`select 1`), 1, 'it connects again by itself')
  // Ended in the midst of a transaction, without a farewell.
  const lost = connect({ max: 1 })
  await new Promise((done) => {
    lost.begin(async (sql) => {
      await sql`insert into postgresjs_t values (777, 'lost', 0)`
      done()
      await new Promise(() => {})
    }).catch(() => {})
  })
  await lost.end({ timeout: 0 })
  assert.equal(await value(sql`select count(*)::int from postgresjs_t where id = 777`), 0)
  await doomed.end()
}

const sql = connect()
await types(sql)
await transactions(sql)
await mistakes(sql)
await pipelines()
await copies(sql)
await largeObjects(sql)
await bigResults(sql)
await cancels(sql)
// Statements that are prepared already, under DDL.
for (let turn = 0; turn < 6; turn++) await sql`select word from postgresjs_t where id = ${5}`
await sql`alter table postgresjs_t alter column amount type float8`
assert.equal(await value(sql`select word from postgresjs_t where id = ${5}`), WORD)
await sessions(sql)
await manyAtOnce(sql)
await reconnects(sql)
await sql`drop table postgresjs_t, postgresjs_c`
await sql.end()
