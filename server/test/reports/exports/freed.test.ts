import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { recordAction } from '../../../src/replies/actions.ts'
import { type Ending, fetchExport, openExport, startExports, untilBlocked, untilNothingRuns, untilStalled, whileLocked } from './clients.ts'
import { caller, campaignId, database, pool, url } from './shared.ts'
import { readCsv, readZip } from './support.ts'

// However an export ends, of either sort and at whatever point, its statement ends with it, its place is free again, and what was cut off does
// not look whole. Each test waits for the point it is about: the database waits for the client, or for a lock that the test holds.

const CSV = `${url}/v1/reports/messages/export`
const ZIP = `${url}/v1/reports/campaigns/${campaignId}/all-data-export`
const EXPORTS = [
  ['the CSV', CSV],
  ['the archive', ZIP],
] as const
/** Without these no export can begin. */
const LOCKED = 'messages, campaigns'

const open = (address: string) => openExport(address, caller.authorization)
const kill = (pid = 0) => pool.query('select pg_terminate_backend($1, 5000)', [pid])

/** Of what an account may have at once, all is free: two begin, and one more does not. */
async function assertAllFree(): Promise<void> {
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
  describe(`${what} gives back all that it had`, () => {
    test('when it has come to its end', async () => {
      assert.equal((await open(address).ending()).is, 'whole')
      await assertAllFree()
    })

    test('within a second when its client goes away in the middle', async () => {
      const { leave } = open(address)
      await untilStalled(pool)
      leave()
      await untilNothingRuns(pool, 1_000)
      await assertAllFree()
    })

    test('within a second when its client goes away before there is anything to send', async () => {
      await whileLocked(database.url, LOCKED, async () => {
        const { leave } = open(address)
        await untilBlocked(pool)
        leave()
        await untilNothingRuns(pool, 1_000)
      })
      await assertAllFree()
    })

    test('within a second when its client goes away while it waits behind another on the same connection', async () => {
      const { hostname, port, pathname } = new URL(address)
      const socket = connect(Number(port), hostname).pause()
      socket.write(`GET ${pathname} HTTP/1.1\r\nHost: x\r\nAuthorization: ${caller.authorization}\r\n\r\n`.repeat(2))
      await untilStalled(pool, 2)
      socket.destroy()
      await untilNothingRuns(pool, 1_000)
      await assertAllFree()
    })

    test('when the database fails in the middle, which breaks it off', async () => {
      const { ending } = open(address)
      const [stalled] = await untilStalled(pool)
      await kill(stalled?.pid)
      assert.equal((await ending()).is, 'broken')
      await assertAllFree()
    })

    test('when the database fails before there is anything to send, which is a 503', async () => {
      await whileLocked(database.url, LOCKED, async () => {
        const answering = fetchExport(address, caller.authorization)
        const [blocked] = await untilBlocked(pool)
        await kill(blocked?.pid)
        const { status, headers, bytes } = await answering
        assert.deepEqual([status, JSON.parse(bytes.toString()).code], [503, 'RCS_UNAVAILABLE'])
        assert.deepEqual([headers.get('content-disposition'), headers.get('retry-after')], [null, '1'])
      })
      await assertAllFree()
    })
  })

  test(`${what} that was cut off has no last chunk, to whoever reads the bytes`, async () => {
    const readAll = openRaw(address)
    const [stalled] = await untilStalled(pool)
    await kill(stalled?.pid)
    const received = await readAll()
    assert.match(received, /^HTTP\/1\.1 200 OK\r\n/)
    assert.match(received, /\r\ntransfer-encoding: chunked\r\n/i)
    assert.doesNotMatch(received.slice(-20), /0\r\n\r\n$/)
  })
}

test('requests that are refused take no place', async () => {
  for (const [address, status] of [
    [`${url}/v1/reports/campaigns/unknown/all-data-export`, 404],
    [`${ZIP}?from=2026-11-01`, 400],
    [`${CSV}?from=2026-11-31`, 400],
  ] as const) {
    for (let n = 0; n < 3; n += 1) assert.equal((await fetchExport(address, caller.authorization)).status, status)
  }
  await assertAllFree()
})

/** Asks over a bare connection, and reads nothing until told to; then, all that comes until it is closed. */
function openRaw(address: string) {
  const { hostname, port, pathname } = new URL(address)
  const socket = connect(Number(port), hostname)
  let received = ''
  const closed = new Promise<void>((resolve) => {
    // A reset ends it too; what came before counts.
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

test('all files of an archive are of the moment of its first, however long its client takes to read', async () => {
  const { answer } = open(ZIP)
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
  const files = readZip(Buffer.concat(await (await answer).toArray()))
  assert.deepEqual(readCsv(files.get('actions.csv') as string), [])
})

test('a client who has taken all there is does not answer for a database that is slow', async () => {
  const idleMs = 300
  const { pathname } = new URL(ZIP)
  let ended: Promise<Ending> | undefined
  await whileLocked(database.url, 'recipient_actions', async () => {
    const alone = await startExports(pool, { idleMs, longestMs: 60_000 })
    ended = openExport(`${alone}${pathname}`, String(caller.accountId)).ending()
    await untilBlocked(pool)
    // For as long as it would take to be cut off.
    await sleep(4 * idleMs)
  })
  assert.equal((await ended)?.is, 'whole')
})
