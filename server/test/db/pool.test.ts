import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import { isLockedOut, isUnavailable, transaction } from '../../src/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'

const { pool } = await createTestDatabase()
await pool.query('create table marks (mark text)')

describe('a transaction', () => {
  test('commits when its work returns and rolls back when it throws', async () => {
    assert.equal(await transaction(pool, async (tx) => (await tx.query(`insert into marks values ('kept')`)).rowCount), 1)
    await assert.rejects(
      transaction(pool, async (tx) => {
        await tx.query(`insert into marks values ('undone')`)
        throw new Error('changed my mind')
      }),
      { message: 'changed my mind' },
    )
    assert.deepEqual((await pool.query('select mark from marks')).rows, [{ mark: 'kept' }])
  })

  test('that went on after a statement failed is not taken for committed', async () => {
    const swallowing = transaction(pool, async (tx) => {
      await tx.query(`insert into marks values ('swallowed')`)
      await tx.query('select 1/0').catch(() => {})
    })
    await assert.rejects(swallowing, { message: /was rolled back/ })
    assert.deepEqual((await pool.query('select mark from marks')).rows, [{ mark: 'kept' }])
  })

  test('whose connection is killed, in a statement or between two, fails as "unavailable", harms nobody else and leaves nothing', async () => {
    for (const statement of ['select pg_sleep(60)', undefined]) {
      const failing = transaction(pool, async (tx) => {
        await tx.query(`insert into marks values ('lost')`)
        const { rows } = await tx.query('select pg_backend_pid() as pid')
        const next = statement === undefined ? undefined : tx.query(statement)
        // Its end is looked at below; it may come before.
        next?.catch(() => {})
        await pool.query('select pg_terminate_backend($1, 5000)', [rows[0].pid])
        await next
        await tx.query('select 1')
      })
      await assert.rejects(failing, (error) => isUnavailable(error))
    }
    assert.deepEqual((await pool.query('select mark from marks')).rows, [{ mark: 'kept' }])
    assert.equal(pool.totalCount - pool.idleCount, 0, 'every connection is back or gone')
  })
})

test('a connection that breaks just as it passes from one to the next fails the next one alone', async () => {
  const clients = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()))
  const [first, ...others] = clients as [pg.PoolClient, ...pg.PoolClient[]]
  const next = pool.connect()
  first.release()
  // As the driver does where an answer and the end of the session are read at once: nobody has had time to listen.
  first.emit('error', new Error('terminating connection'))
  assert.equal(await next, first)
  first.release(true)
  for (const client of others) client.release()
})

test('what the database refuses is told apart from a database that could not be asked', async () => {
  await assert.rejects(pool.query('select 1/0'), (error) => !isUnavailable(error))
  await assert.rejects(pool.query('select * from nowhere'), (error) => !isUnavailable(error))
  assert.ok(!isUnavailable(Object.assign(new Error('no such file'), { code: 'ENOENT', syscall: 'open' })))
  assert.ok(isUnavailable(Object.assign(new Error('no such socket'), { code: 'ENOENT', syscall: 'connect' })))
  // A database that has stood still ends the transactions that waited meanwhile, and says so as the answer to their next statement.
  assert.ok(isUnavailable(Object.assign(new pg.DatabaseError('it took too long', 0, 'error'), { code: '25P03' })))
})

test('a database that lets nobody in is told apart from one that has too many in, and from a statement that is refused', () => {
  const refused = (code: string, routine: string) => Object.assign(new pg.DatabaseError('no', 0, 'error'), { code, routine })
  for (const code of ['42501', '55000']) {
    const [atTheDoor, inside] = [refused(code, 'CheckMyDatabase'), refused(code, 'aclcheck_error')]
    assert.deepEqual([isLockedOut(atTheDoor), isUnavailable(atTheDoor)], [true, true])
    assert.deepEqual([isLockedOut(inside), isUnavailable(inside)], [false, false])
  }
  const full = refused('53300', 'CheckMyDatabase')
  assert.deepEqual([isLockedOut(full), isUnavailable(full)], [false, true])
})
