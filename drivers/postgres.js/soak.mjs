// Clients that send many named statements without waiting for any, until the time is over: see soak.rs.

import assert from 'node:assert/strict'
import postgres from 'postgres'

const END = performance.now() + 1000 * Number(process.env.SOAK_S)
const dice = (sides) => Math.floor(Math.random() * sides)
const ssl = process.env.PGSSLMODE === 'disable' ? false : process.env.PGSSLMODE

// A client that waits for long is told so by a notice, which the driver would print.
async function client(number) {
  while (performance.now() < END) {
    const sql = postgres({ max: 1, ssl, onnotice: () => {} })
    for (let turn = 0; turn < 200 && performance.now() < END; turn++) await piece(sql, number)
    await sql.end()
  }
}

async function piece(sql, number) {
  const n = dice(250)
  const many = Array.from({ length: 8 }, (_, step) => sql.unsafe(`select $1::int + ${n + step} as seen`, [number], { prepare: true }))
  many.push(sql`select 1 / ${0}::int`.then(() => assert.fail('no error'), (error) => assert.equal(error.code, '22012')))
  many.push(sql`select ${n}::int as seen`)
  const seen = await Promise.all(many)
  assert.deepEqual(seen.slice(0, 8).map((rows) => rows[0].seen), Array.from({ length: 8 }, (_, step) => number + n + step))
  assert.equal(seen[9][0].seen, n)
  if (dice(4) === 0) {
    const undone = sql.begin(async (sql) => {
      await sql`update soak set amount = amount + 1 where id = ${n % 20}`
      if (n % 2) await sql`select 1 / ${0}::int`
    })
    await (n % 2 ? assert.rejects(undone, { code: '22012' }) : undone)
  }
}

await Promise.all(Array.from({ length: Number(process.env.SOAK_CLIENTS) }, (_, number) => client(number)))
