import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { recordAction } from '../../../src/replies/actions.ts'
import { ownerOf } from '../../support/database.ts'
import { type Ending, fetchExport, openExport, startExports, untilBlocked, untilNothingRuns, untilStalled, whileLocked } from './clients.ts'
import { caller, campaignId, database, pool, url } from './shared.ts'
import { readCsv, readZip } from './support.ts'

// However and whenever an export ends, its statement ends and its export slot is free again, and a truncated file does not look complete. Each
// test waits until the database waits for the client, or for a lock of the test.

const CSV = `${url}/v1/reports/messages/export`
const ZIP = `${url}/v1/reports/campaigns/${campaignId}/all-data-export`
const EXPORTS = [
  ['the CSV', CSV],
  ['the archive', ZIP],
] as const
/** While these tables are locked, no export begins. */
const LOCKED = 'messages, campaigns'

const open = (address: string) => openExport(address, caller.authorization)
const kill = (pid = 0) => ownerOf(pool).query('select pg_terminate_backend($1, 5000)', [pid])

/** Both export slots of the account are free: two exports begin, and a third is rejected. */
async function assertSlotsFree(): Promise<void> {
  await untilNothingRuns(pool)
  await whileLocked(database.url, LOCKED, async () => {
    const both = EXPORTS.map(([, address]) => open(address))
    await untilBlocked(pool, 2)
    assert.equal((await fetchExport(CSV, caller.authorization)).status, 429)
    for (const { leave } of both) leave()
    await untilNothingRuns(pool)
  })
}

for (const [what, address] of EXPORTS) {
  describe(`${what} frees its export slot and its connection`, () => {
    test('at its end', async () => {
      assert.equal((await open(address).ending()).is, 'whole')
      await assertSlotsFree()
    })

    test('when its client disconnects while it is sent', async () => {
      const { leave } = open(address)
      await untilStalled(pool)
      leave()
      await untilNothingRuns(pool)
      await assertSlotsFree()
    })

    test('when its client disconnects before its first byte', async () => {
      await whileLocked(database.url, LOCKED, async () => {
        const { leave } = open(address)
        await untilBlocked(pool)
        leave()
        await untilNothingRuns(pool)
      })
      await assertSlotsFree()
    })

    test('when its client disconnects while it waits behind another on the same connection', async () => {
      const { hostname, port, pathname } = new URL(address)
      const socket = connect(Number(port), hostname).pause()
      socket.write(`GET ${pathname} HTTP/1.1\r\nHost: x\r\nAuthorization: ${caller.authorization}\r\n\r\n`.repeat(2))
      await untilStalled(pool, 2)
      socket.destroy()
      await untilNothingRuns(pool)
      await assertSlotsFree()
    })

    test('when the database fails while it is sent, and breaks off', async () => {
      const { ending } = open(address)
      const [stalled] = await untilStalled(pool)
      await kill(stalled?.pid)
      assert.equal((await ending()).is, 'broken')
      await assertSlotsFree()
    })

    test('when the database fails before its first byte, and is a 503', async () => {
      await whileLocked(database.url, LOCKED, async () => {
        const responding = fetchExport(address, caller.authorization)
        const [blocked] = await untilBlocked(pool)
        await kill(blocked?.pid)
        const { status, headers, bytes } = await responding
        assert.deepEqual([status, JSON.parse(bytes.toString()).code], [503, 'RCS_UNAVAILABLE'])
        assert.deepEqual([headers.get('content-disposition'), headers.get('retry-after')], [null, '1'])
      })
      await assertSlotsFree()
    })
  })

  test(`${what} has no last chunk when it is truncated`, async () => {
    const readAll = openRaw(address)
    const [stalled] = await untilStalled(pool)
    await kill(stalled?.pid)
    const received = await readAll()
    assert.match(received, /^HTTP\/1\.1 200 OK\r\n/)
    assert.match(received, /\r\ntransfer-encoding: chunked\r\n/i)
    assert.doesNotMatch(received.slice(-20), /0\r\n\r\n$/)
  })
}

test('a rejected request takes no export slot', async () => {
  for (const [address, status] of [
    [`${url}/v1/reports/campaigns/unknown/all-data-export`, 404],
    [`${ZIP}?from=2026-11-01`, 400],
    [`${CSV}?from=2026-11-31`, 400],
  ] as const) {
    for (let n = 0; n < 3; n += 1) assert.equal((await fetchExport(address, caller.authorization)).status, status)
  }
  await assertSlotsFree()
})

/** Requests over a plain connection, and reads nothing until the returned function is called. */
function openRaw(address: string) {
  const { hostname, port, pathname } = new URL(address)
  const socket = connect(Number(port), hostname)
  let received = ''
  const closed = new Promise<void>((resolve) => {
    // A reset also closes it; the bytes before count.
    socket.on('error', () => {})
    socket.on('close', () => resolve())
  })
  socket.write(`GET ${pathname} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: ${caller.authorization}\r\n\r\n`)
  socket.pause()
  return async () => {
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
    })
    socket.resume()
    await closed
    return received
  }
}

test('reads all files of an archive from one snapshot, however slow its client is', async () => {
  const { response } = open(ZIP)
  await untilStalled(pool)
  const { rows } = await pool.query('select id from messages where campaign_id = $1 limit 1', [campaignId])
  const action = {
    ...caller,
    recipient: '+48500100200',
    messageId: rows[0].id,
    kind: 'wrote',
    channel: 'rcs',
    occurredAt: new Date(),
  } as const
  await recordAction(pool, { ...action, text: 'Too late' })
  const files = readZip(Buffer.concat(await (await response).toArray()))
  assert.deepEqual(readCsv(files.get('actions.csv') as string), [])
})

test('does not cut off a client that waits for a slow database', async () => {
  const idleMs = 1_000
  const { pathname } = new URL(ZIP)
  let ended: Promise<Ending> | undefined
  await whileLocked(database.url, 'recipient_actions', async () => {
    const alone = await startExports(pool, { idleMs, longestMs: 60_000 })
    ended = openExport(`${alone}${pathname}`, String(caller.accountId)).ending()
    await untilBlocked(pool)
    // Longer than the time after which an idle client is cut off.
    await sleep(3 * idleMs)
  })
  assert.equal((await ended)?.is, 'whole')
})
