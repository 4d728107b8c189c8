import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { createLookup } from '../../src/webhooks/address.ts'

const [A, AAAA] = [1, 28]

function questionOf(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 }
}

/** A name server with these records. It never responds to a query for `silent.example`. */
async function startNameServer(records: Record<string, { v4?: number[]; v6?: number[] }>) {
  const socket = createSocket('udp4')
  const queries: string[] = []
  socket.on('message', (query, { port, address }) => {
    const { name, type, end } = questionOf(query)
    queries.push(`${name} ${type}`)
    if (name === 'silent.example') return
    const record = records[name]
    const data = type === A ? record?.v4 : record?.v6
    const header = Buffer.from(query.subarray(0, 12))
    // Flags: a response, without error or with NXDOMAIN. Then the number of answers.
    header.writeUInt16BE(record === undefined ? 0x8183 : 0x8180, 2)
    header.writeUInt16BE(data === undefined ? 0 : 1, 6)
    header.fill(0, 8)
    const answer = data === undefined ? [] : [0xc0, 0x0c, 0, type, 0, 1, 0, 0, 0, 0, 0, data.length, ...data]
    socket.send(Buffer.concat([header, query.subarray(12, end), Buffer.from(answer)]), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  after(() => socket.close())
  return { lookup: createLookup([`127.0.0.1:${socket.address().port}`]), queries }
}

const V6 = [0x26, 0x06, 0x47, 0, ...Array.from({ length: 11 }, () => 0), 0x11]
const { lookup, queries } = await startNameServer({
  'both.example': { v4: [192, 0, 2, 1], v6: V6 },
  'four.example': { v4: [192, 0, 2, 2] },
  'neither.example': {},
})

test('a look-up returns the addresses of both families and sends one query for each', async () => {
  assert.deepEqual(await lookup('both.example'), [
    { address: '2606:4700::11', family: 6 },
    { address: '192.0.2.1', family: 4 },
  ])
  assert.deepEqual(await lookup('four.example'), [{ address: '192.0.2.2', family: 4 }])
  assert.deepEqual(
    queries.toSorted((a, b) => a.localeCompare(b)),
    [`both.example ${A}`, `both.example ${AAAA}`, `four.example ${A}`, `four.example ${AAAA}`],
  )
})

test('a look-up fails for a name that does not exist or has no address', async () => {
  for (const name of ['missing.example', 'neither.example']) await assert.rejects(lookup(name), { code: 'ENOTFOUND' })
})

test('a name whose servers are silent delays no other look-up', async () => {
  let failed = 0
  const silent = Array.from({ length: 16 }, () =>
    lookup('silent.example').catch((error: NodeJS.ErrnoException) => {
      failed += 1
      return error.code
    }),
  )
  await lookup('four.example')
  assert.equal(failed, 0)
  assert.deepEqual(new Set(await Promise.all(silent)), new Set(['EAI_AGAIN']))
})
