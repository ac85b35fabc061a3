// Clients that give their statements names, the same for different ones, until the time is over: see soak.rs.

import assert from 'node:assert/strict'
import pg from 'pg'

const END = performance.now() + 1000 * Number(process.env.SOAK_S)
const dice = (sides) => Math.floor(Math.random() * sides)

async function client(number) {
  while (performance.now() < END) {
    const db = new pg.Client()
    await db.connect()
    for (let turn = 0; turn < 300 && performance.now() < END; turn++) await piece(db, number)
    await db.end()
  }
}

async function piece(db, number) {
  const n = dice(250)
  // Each client has another statement of this name; the driver holds on to the text of the first of a connection.
  const own = { name: 'own', text: `select $1::int + ${number} as seen`, values: [n] }
  assert.equal((await db.query(own)).rows[0].seen, n + number)
  assert.equal((await db.query({ name: `n${n}`, text: `select $1::int * ${n} as seen`, values: [number] })).rows[0].seen, n * number)
  if (dice(3) === 0) {
    await db.query('begin')
    await db.query({ name: 'update', text: 'update soak set amount = amount + 1 where id = $1', values: [n % 20] })
    if (dice(2) === 0) await assert.rejects(db.query({ name: 'divide', text: 'select 1 / $1::int', values: [0] }), { code: '22012' })
    await db.query(dice(2) === 0 ? 'commit' : 'rollback')
  }
  if (dice(5) === 0) await Promise.all(Array.from({ length: 10 }, () => db.query({ ...own, values: [1] })))
}

await Promise.all(Array.from({ length: Number(process.env.SOAK_CLIENTS) }, (_, number) => client(number)))
