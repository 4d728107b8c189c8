import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import { isLockedOut, isUnavailable, transaction } from '../../src/db/pool.ts'
import { createTable, createTestDatabase, ownerOf } from '../support/database.ts'

const { pool } = await createTestDatabase()
await createTable(pool, 'marks (mark text)')

describe('a transaction', () => {
  test('commits when its work returns and rolls back when it throws', async () => {
    assert.equal(await transaction(pool, async (tx) => (await tx.query(`insert into marks values ('kept')`)).rowCount), 1)
    await assert.rejects(
      transaction(pool, async (tx) => {
        await tx.query(`insert into marks values ('undone')`)
        throw new Error('rollback')
      }),
      { message: 'rollback' },
    )
    assert.deepEqual((await pool.query('select mark from marks')).rows, [{ mark: 'kept' }])
  })

  test('fails when it continues after a failed statement', async () => {
    const swallowing = transaction(pool, async (tx) => {
      await tx.query(`insert into marks values ('swallowed')`)
      await tx.query('select 1/0').catch(() => {})
    })
    await assert.rejects(swallowing, { message: /was rolled back/ })
    assert.deepEqual((await pool.query('select mark from marks')).rows, [{ mark: 'kept' }])
  })

  test('fails as "unavailable" when its connection is killed, and leaves nothing', async () => {
    for (const statement of ['select pg_sleep(60)', undefined]) {
      const failing = transaction(pool, async (tx) => {
        await tx.query(`insert into marks values ('lost')`)
        const { rows } = await tx.query('select pg_backend_pid() as pid')
        const next = statement === undefined ? undefined : tx.query(statement)
        // It is awaited below, and may end before.
        next?.catch(() => {})
        await ownerOf(pool).query('select pg_terminate_backend($1, 5000)', [rows[0].pid])
        await next
        await tx.query('select 1')
      })
      await assert.rejects(failing, (error) => isUnavailable(error))
    }
    assert.deepEqual((await pool.query('select mark from marks')).rows, [{ mark: 'kept' }])
    assert.equal(pool.totalCount - pool.idleCount, 0, 'every connection is released or closed')
  })
})

test('a connection that breaks while the next caller gets it fails only that caller', async () => {
  const clients = await Promise.all(Array.from({ length: 10 }, () => pool.connect()))
  const [first, ...others] = clients as [pg.PoolClient, ...pg.PoolClient[]]
  const next = pool.connect()
  first.release()
  // As the driver does when it reads a result and the end of the session together: no listener is attached yet.
  first.emit('error', new Error('terminating connection'))
  assert.equal(await next, first)
  first.release(true)
  for (const client of others) client.release()
})

test('distinguishes an error of a statement from an unreachable database', async () => {
  await assert.rejects(pool.query('select 1/0'), (error) => !isUnavailable(error))
  await assert.rejects(pool.query('select * from nowhere'), (error) => !isUnavailable(error))
  assert.ok(!isUnavailable(Object.assign(new Error('no such file'), { code: 'ENOENT', syscall: 'open' })))
  assert.ok(isUnavailable(Object.assign(new Error('no such socket'), { code: 'ENOENT', syscall: 'connect' })))
  // A database that stood still ends transactions that were idle, and reports it on their next statement.
  assert.ok(isUnavailable(Object.assign(new pg.DatabaseError('it took too long', 0, 'error'), { code: '25P03' })))
})

test('distinguishes a rejected login from too many connections and from a rejected statement', () => {
  const refused = (code: string, routine: string) => Object.assign(new pg.DatabaseError('no', 0, 'error'), { code, routine })
  for (const code of ['42501', '55000']) {
    const [atLogin, inSession] = [refused(code, 'CheckMyDatabase'), refused(code, 'aclcheck_error')]
    assert.deepEqual([isLockedOut(atLogin), isUnavailable(atLogin)], [true, true])
    assert.deepEqual([isLockedOut(inSession), isUnavailable(inSession)], [false, false])
  }
  for (const code of ['22023', '42501']) assert.deepEqual(isLockedOut(refused(code, 'call_string_check_hook')), true, 'of the role')
  const full = refused('53300', 'CheckMyDatabase')
  assert.deepEqual([isLockedOut(full), isUnavailable(full)], [false, true])
})
