// Prisma's client on its adapter for node-postgres. Its migrations are made by a program that npm does not carry.

import assert from 'node:assert/strict'
import { PrismaPg } from '@prisma/adapter-pg'
import { PrismaClient } from '@prisma/client'

const WORD = 'Ünïcödé 漢字 🐘 \'quoted\' "double" back\\slash'
const TABLES = [
  'drop table if exists prisma_book, prisma_author',
  `create table prisma_author (id serial primary key, name text unique not null, money decimal(20, 4), tags text[], more jsonb,
     raw bytea, born timestamp(3) not null default current_timestamp)`,
  `create table prisma_book (id serial primary key, title text not null, pages int not null default 7,
     "authorId" int not null references prisma_author on delete cascade)`,
]

// Host, port, user, password, database and TLS come from the PG* environment.
const connect = () => new PrismaClient({ adapter: new PrismaPg({ max: 8 }) })
const fails = (code, work) => assert.rejects(work, (error) => error.code === code || assert.fail(`${code} wanted, not ${error.code}: ${error}`))

async function queries(db) {
  const raw = Uint8Array.from({ length: 256 }, (_, n) => n)
  for (let n = 0; n < 40; n++) {
    await db.author.create({
      data: {
        name: `${WORD} ${n}`, money: n / 4, tags: ['a', WORD], more: { n: [n, null] }, raw,
        books: { create: [0, 1, 2].map((b) => ({ title: `${n}.${b}` })) },
      },
    })
  }
  for (let turn = 0; turn < 8; turn++) {
    const seen = await db.author.findMany({ where: { money: { lt: 5 }, tags: { has: WORD } }, include: { books: true }, orderBy: { id: 'asc' } })
    assert.equal(seen.length, 20)
    assert.ok(seen.every((author) => author.books.length === 3))
    assert.deepEqual([seen[3].tags, seen[3].more], [['a', WORD], { n: [3, null] }])
    assert.deepEqual(Uint8Array.from(seen[3].raw), raw)
    assert.equal(`${seen[3].money}`, '0.75')
    assert.equal(await db.author.count({ where: { more: { path: ['n', '0'], equals: 7 } } }), 1)
  }
  assert.deepEqual((await db.book.aggregate({ _sum: { pages: true }, _count: true })), { _sum: { pages: 840 }, _count: 120 })
  assert.equal((await db.book.groupBy({ by: ['authorId'], _count: true })).length, 40)
  const made = await db.author.upsert({ where: { name: 'new' }, create: { name: 'new', tags: [] }, update: { money: 1 } })
  assert.equal(`${(await db.author.upsert({ where: { name: 'new' }, create: { name: 'new' }, update: { money: 1 } })).money}`, '1')
  await db.author.delete({ where: { id: made.id } })
  assert.equal((await db.book.createMany({ data: Array.from({ length: 500 }, (_, n) => ({ title: `m${n}`, authorId: 1 })) })).count, 500)
  assert.equal((await db.book.deleteMany({ where: { title: { startsWith: 'm' } } })).count, 500)
  assert.equal((await db.$queryRaw`select g, repeat('x', 500) from generate_series(1, ${20000}::int) g`).length, 20000)
}

async function transactions(db) {
  for (let turn = 0; turn < 7; turn++) {
    await fails('P2002', () => db.author.create({ data: { name: `${WORD} 1` } }))
    await assert.rejects(db.$queryRawUnsafe('selec 1'), /42601/)
    await assert.rejects(db.$queryRaw`select 1 / ${0}::int`, /22012/)
    await fails('P2025', () => db.author.update({ where: { id: 1_000_000 }, data: { money: 1 } }))
    await assert.rejects(db.$transaction(async (db) => {
      await db.author.deleteMany()
      throw new Error('so it is rolled back')
    }), /so it is/)
    await fails('P2002', () => db.$transaction([db.author.create({ data: { name: 'undone' } }), db.author.create({ data: { name: 'undone' } })]))
    await db.$transaction(async (db) => {
      const author = await db.author.findUniqueOrThrow({ where: { name: `${WORD} 2` } })
      await db.author.update({ where: { id: author.id }, data: { money: { increment: 1 } } })
    }, { isolationLevel: 'Serializable' })
  }
  assert.equal(await db.author.count(), 40)
  assert.equal(`${(await db.author.findUnique({ where: { name: `${WORD} 2` } })).money}`, '7.5')
}

async function manyAtOnce(db) {
  const work = async (number) => {
    for (let turn = 0; turn < 10; turn++) {
      await db.$transaction(async (db) => {
        const author = await db.author.create({ data: { name: `${number}.${turn}` } })
        await db.book.create({ data: { title: WORD, authorId: author.id } })
      }, { maxWait: 60_000, timeout: 60_000 })
      assert.equal(await db.book.count({ where: { author: { name: `${number}.${turn}` } } }), 1)
    }
  }
  await Promise.all(Array.from({ length: 12 }, (_, number) => work(number)))
}

const db = connect()
for (const sql of TABLES) await db.$executeRawUnsafe(sql)
await queries(db)
await transactions(db)
await manyAtOnce(db)
for (let n = 0; n < 5; n++) {
  const other = connect()
  assert.equal(await other.author.count({ where: { name: { startsWith: 'Ünïcödé' } } }), 40)
  await other.$disconnect()
}
await db.$executeRawUnsafe('drop table prisma_book, prisma_author')
await db.$disconnect()
