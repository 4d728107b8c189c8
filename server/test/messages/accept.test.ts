import assert from 'node:assert/strict'
import { createHook } from 'node:async_hooks'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { after, describe, test } from 'node:test'
import fc from 'fast-check'
import { createHotPool } from '../../src/db/pool.ts'
import { ApiError } from '../../src/errors.ts'
import { type Accepted, createAcceptor, type Submission } from '../../src/messages/accept.ts'
import { requestHash } from '../../src/messages/request-hash.ts'
import { createTestDatabase } from '../support/database.ts'
import { countRows, type MessageCaller, newKey, ONE_MESSAGE, RECIPIENT, startMessageService } from '../support/messages.ts'
import { type ApiResponse, createAssignedAgent, createCaller } from '../support/service.ts'
import { sending, TEXT } from '../support/templates.ts'

const seed = Date.now() % 2 ** 31
const database = await createTestDatabase()
const { hotPool: pool } = database

async function newSender() {
  const { accountId } = await createCaller(pool)
  const agentId = await createAssignedAgent(pool, accountId)
  const submission = (key: string, fields: Partial<Submission> = {}): Submission => {
    const body = { agentId, message: { inline: { type: 'MESSAGE', content: 'Hello' } } as Submission['message'], ...fields }
    return { accountId, recipients: [RECIPIENT], test: false, idempotency: { key, hash: requestHash(body) }, ...body }
  }
  return { accountId, submission }
}

/** The id of the message, or the code of the error. */
function outcomeOf(result: PromiseSettledResult<Accepted>): string {
  if (result.status === 'fulfilled') return result.value.messageIds[0] as string
  return result.reason instanceof ApiError ? result.reason.code : 'FAULT'
}

describe('requests that share a statement', () => {
  test('are accepted even if another one is rejected by a rule or by the database', async () => {
    const { accountId, submission } = await newSender()
    const accept = createAcceptor(pool, () => {})
    const faulty: [fields: Partial<Submission>, code: string][] = [
      [{ agentId: 'nobody' }, 'RCS_AGENT_NOT_FOUND'],
      [{ message: { templateId: 2 ** 40 } }, 'RCS_TEMPLATE_NOT_FOUND'],
      [{ expiresAt: '2020-01-01T00:00:00Z' }, 'RCS_INVALID_REQUEST'],
      // The schema rejects it before, so only a direct call gets here.
      [{ recipients: ['+48\u0000500'] }, 'FAULT'],
    ]
    for (const [index, [fields, code]] of faulty.entries()) {
      const batch = Array.from({ length: 9 }, (_, place) => submission(`k${index}-${place}`, place === 4 ? fields : {}))
      const outcomes = (await Promise.allSettled(batch.map(accept))).map(outcomeOf)
      assert.equal(outcomes[4], code)
      const ids = outcomes.toSpliced(4, 1)
      assert.equal(new Set(ids).size, 8)
      const { rows } = await pool.query('select count(*) from messages where id = any ($1::uuid[])', [ids])
      assert.deepEqual(rows, [{ count: 8 }], code)
    }
    assert.deepEqual(await countRows(pool, accountId), { messages: 32, queue: 32, expiries: 0, keys: 32 })
  })

  test('of two accounts with the same key create a message each', async () => {
    const [one, two] = [await newSender(), await newSender()]
    const accept = createAcceptor(pool, () => {})
    const outcomes = (await Promise.allSettled([one, two, one, two].map(({ submission }) => accept(submission('same'))))).map(outcomeOf)
    assert.deepEqual([outcomes[2], outcomes[3]], [outcomes[0], outcomes[1]])
    assert.notEqual(outcomes[0], outcomes[1])
    for (const { accountId } of [one, two]) assert.deepEqual(await countRows(pool, accountId), ONE_MESSAGE)
  })

  test('schedule the expiry of a message that has its own, and of no other', async () => {
    const { submission } = await newSender()
    const accept = createAcceptor(pool, () => {})
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
    const [own, usual] = await Promise.all([accept(submission('own', { expiresAt })), accept(submission('usual'))])
    const ids = [own, usual].flatMap(({ messageIds }) => messageIds)
    const { rows } = await pool.query(
      `select m.id = $1 as "isOwn", e.expires_at = m.expires_at as "isScheduled", q.expires_at = m.expires_at as "isQueued",
         m.expires_at = $3::timestamptz as "isAsked", m.expires_at = m.accepted_at + interval '48 hours' as "isUsual"
       from messages m join queue q on q.message_id = m.id left join expiries e on e.message_id = m.id where m.id in ($1, $2) order by 1`,
      [...ids, expiresAt],
    )
    assert.deepEqual(rows, [
      { isOwn: false, isScheduled: null, isQueued: true, isAsked: false, isUsual: true },
      { isOwn: true, isScheduled: true, isQueued: true, isAsked: true, isUsual: false },
    ])
  })

  test('keep their own recipients, contents and agents', async () => {
    const senders = await Promise.all(Array.from({ length: 3 }, newSender))
    const accept = createAcceptor(pool, () => {})
    const submissions = Array.from({ length: 60 }, (_, index) => {
      const { submission } = senders[index % 3] as (typeof senders)[number]
      const message: Submission['message'] = { inline: { type: 'MESSAGE', content: `text ${index}` } }
      const recipients = Array.from({ length: 1 + (index % 5) }, (__, place) => `+48500${String(index * 10 + place).padStart(6, '0')}`)
      // Only test messages have several recipients.
      if (recipients.length === 1) return submission(`k${index}`, { message, recipients, clientReferenceId: `r${index}` })
      const { idempotency, ...test } = submission('', { message, recipients, test: true, basic: index % 2 === 0 })
      return test
    })
    const accepted = await Promise.all(submissions.map(accept))
    for (const [index, { messageIds, replayed }] of accepted.entries()) {
      const {
        accountId,
        agentId,
        recipients,
        test: isTest,
        basic = false,
        clientReferenceId = null,
        message,
      } = submissions[index] as Submission
      assert.equal(replayed, false)
      const { rows } = await pool.query(
        `select account_id as "accountId", agent_id as "agentId", recipient, test, basic, client_reference_id as "clientReferenceId", content
         from messages m join unnest($1::uuid[]) with ordinality as submitted (id, place) using (id) order by place`,
        [messageIds],
      )
      const content = message.inline
      assert.deepEqual(
        rows,
        recipients.map((recipient) => ({ accountId, agentId, recipient, test: isTest, basic, clientReferenceId, content })),
      )
    }
  })

  test(`create one message per key for any keys, contents and batches on two nodes (fast-check, seed ${seed})`, async () => {
    const { submission, accountId } = await newSender()
    const otherPool = createHotPool({ connectionString: database.url }, () => {})
    const nodes = [createAcceptor(pool, () => {}), createAcceptor(otherPool, () => {})]
    const request = fc.record({ node: fc.nat(1), key: fc.nat(3), content: fc.nat(2), isFaulty: fc.boolean(), waits: fc.boolean() })
    let round = 0
    let made = 0
    const property = fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 40 }), async (requests) => {
      round += 1
      const results: Promise<PromiseSettledResult<Accepted>[]>[] = []
      for (const { node, key, content, isFaulty, waits } of requests) {
        const message: Submission['message'] = { inline: { type: 'MESSAGE', content: `text ${content}` } }
        const submitted = submission(`${round}-${key}`, { message, ...(isFaulty && { agentId: 'nobody' }) })
        results.push(Promise.allSettled([(nodes[node] as (typeof nodes)[number])(submitted)]))
        // Later requests may be in another batch.
        if (waits) await new Promise(setImmediate)
      }
      const outcomes = (await Promise.all(results)).flat().map((result, index) => ({ ...(requests[index] as Request), result }))
      for (const ofKey of Map.groupBy(outcomes, ({ key }) => key).values()) made += assertOneMade(ofKey)
    })
    try {
      await fc.assert(property, { numRuns: 40, seed })
    } finally {
      await otherPool.end()
    }
    assert.deepEqual(await countRows(pool, accountId), { messages: made, queue: made, expiries: 0, keys: made })
  })
})

type Request = { content: number; isFaulty: boolean; key: number }

/** The requests with one key made one message if any of them is valid. Returns the number of messages. */
function assertOneMade(outcomes: (Request & { result: PromiseSettledResult<Accepted> })[]): number {
  const right = outcomes.filter(({ isFaulty }) => !isFaulty)
  const winners = right.filter(({ result }) => result.status === 'fulfilled')
  const losers = right.filter(({ result }) => result.status === 'rejected')
  const made = winners.filter(({ result }) => result.status === 'fulfilled' && !result.value.replayed)
  const expected = right.length === 0 ? 0 : 1
  assert.equal(made.length, expected, 'one message was created')
  assert.equal(new Set(winners.map(({ content }) => content)).size, expected, 'one content won')
  assert.equal(new Set(winners.map(({ result }) => outcomeOf(result))).size, expected, 'all requests with that content have the same id')
  assert.ok(losers.every(({ content, result }) => content !== made[0]?.content && outcomeOf(result) === 'RCS_IDEMPOTENCY_CONFLICT'))
  assert.ok(outcomes.every(({ isFaulty, result }) => !isFaulty || outcomeOf(result) === 'RCS_AGENT_NOT_FOUND'))
  return made.length
}

// No request waits for the router's polls, for the announcement or for the last use of its key. The usage is read once in five seconds for
// an account.
const NOT_COUNTED = ['announce', 'read-usage', 'find-unplaced', 'store-key-uses']

/** A proxy to the database that counts round trips: every Sync and every simple query is one. */
async function countingDatabase(databaseUrl: string) {
  const target = new URL(databaseUrl)
  const socketDir = target.searchParams.get('host')
  let roundTrips = 0
  const server = createServer((client) => {
    const port = Number(target.port || 5432)
    const upstream = socketDir ? connect(`${socketDir}/.s.PGSQL.${port}`) : connect(port, target.hostname)
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.on('error', () => {})
      from.on('close', () => to.destroy())
      from.pipe(to)
    }
    const read = frameReader()
    let bound = ''
    // The settings of a new connection are the first simple query. The pool opens one whenever the router uses those that are open.
    let isSetUp = false
    client.on('data', (chunk: Buffer) => {
      for (const { type, statement } of read(chunk)) {
        if ((type === 'Q' && isSetUp) || (type === 'S' && !NOT_COUNTED.includes(bound))) roundTrips += 1
        isSetUp ||= type === 'Q'
        if (type === 'B') bound = statement
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  after(() => server.close())
  const url = new URL(target)
  url.hostname = '127.0.0.1'
  url.port = String((server.address() as { port: number }).port)
  url.searchParams.delete('host')
  return { url: url.href, roundTrips: () => roundTrips }
}

/** The protocol messages of a PostgreSQL client: the type, which the first message lacks, and the statement name of a Bind. */
function frameReader(): (chunk: Buffer) => { type: string; statement: string }[] {
  let unread = Buffer.alloc(0)
  let typeLength = 0
  return (chunk) => {
    unread = Buffer.concat([unread, chunk])
    const frames: { type: string; statement: string }[] = []
    while (unread.length >= typeLength + 4 && unread.length >= typeLength + unread.readUInt32BE(typeLength)) {
      const end = typeLength + unread.readUInt32BE(typeLength)
      const [, statement = ''] = unread.toString('latin1', typeLength + 4, end).split('\0')
      frames.push({ type: unread.toString('latin1', 0, typeLength), statement })
      unread = unread.subarray(end)
      typeLength = 1
    }
    return frames
  }
}

/** Counts the name lookups, connections and datagrams of this process, from any library. */
function watchNetwork() {
  const outgoing = new Set(['TCPCONNECTWRAP', 'PIPECONNECTWRAP', 'GETADDRINFOREQWRAP', 'QUERYWRAP', 'UDPSENDWRAP'])
  let calls = 0
  const hook = createHook({
    init: (_id, type) => {
      if (outgoing.has(type)) calls += 1
    },
  }).enable()
  return { calls: () => calls, stop: () => hook.disable() }
}

const media = (path: string) => `https://media.example.com/${path}`

async function contentsOf({ template }: MessageCaller): Promise<Record<string, unknown>[]> {
  const [one, two] = [await template(), await template()]
  const cards = Array.from({ length: 10 }, (_, index) => ({ title: 'Card', imageUrl: media(`${index}.jpg`) }))
  const withButtons = cards.map((card, index) => ({ ...card, buttons: [{ ...sending(one).buttons[0], id: `b${index}` }] }))
  return [
    { inline: TEXT },
    { templateId: one },
    { inline: sending(one, two) },
    { inline: { type: 'AUDIO', data: { audioUrl: media('a.mp3') } } },
    { inline: { type: 'VIDEO', content: 'Text', data: { videoUrl: media('a.mp4'), thumbnailUrl: media('a.jpg') } } },
    { inline: { type: 'FILE', data: { fileUrl: media('a.pdf'), thumbnailUrl: media('a.jpg') } } },
    { inline: { type: 'CARD', data: { title: 'Card', imageUrl: media('a.jpg') } } },
    { inline: { type: 'CAROUSEL', data: { cards: withButtons } } },
    { inline: { type: 'CONTACT', data: { name: 'Shop', phoneNumbers: [RECIPIENT], url: 'https://example.com' } } },
    { inline: { type: 'LOCATION', data: { latitude: 52.2, longitude: 21 } } },
  ]
}

describe('accepting a message', () => {
  for (const [limits, allowed] of Object.entries({ memory: 1, database: 2 })) {
    test(`takes ${allowed} round trips with limits in ${limits}, one more for an error, and no network call`, async () => {
      const counting = await countingDatabase(database.url)
      const service = await startMessageService(
        { url: counting.url, pool },
        { HERALD_LIMITS: limits, HERALD_LIMIT_MESSAGES_PER_SECOND: '1000' },
      )
      const caller = await service.newCaller()
      const { send, sendTest, request } = caller
      const contents = await contentsOf(caller)
      // The node then knows the caller, and all connections of its pool are open: each of these reads takes one.
      const { body } = await send(newKey(), request())
      await Promise.all(Array.from({ length: 30 }, () => caller.ask('GET', `/messages/${body.messageId}`)))
      // The first message of a template with variables takes two more: one reads the content, one accepts again.
      const personal = {
        message: { templateId: await caller.template({ ...TEXT, content: 'Hello {{name}}' }) },
        variables: { name: 'Anna' },
      }
      await send(newKey(), request(personal))

      const network = watchNetwork()
      const { recipient, ...unaddressed } = request()
      const requests = [
        ...contents.map((message) => () => send(newKey(), request({ message }))),
        () => send(newKey(), request(personal)),
        () => send('replayed', request()),
        () => send('replayed', request()),
        () => send('replayed', request({ basic: true })),
        () => send(newKey(), request({ message: { inline: sending(2 ** 40) } })),
        () => sendTest({ ...unaddressed, recipients: [1, 2, 3, 4, 5].map((digit) => `+4850010020${digit}`) }),
      ]
      const statuses: number[] = []
      const tripsBeyond = async (ask: () => Promise<ApiResponse>) => {
        const before = counting.roundTrips()
        const { status } = await ask()
        return { status, beyond: counting.roundTrips() - before - (status === 202 ? allowed : allowed + 1) }
      }
      for (const each of requests) {
        const first = await tripsBeyond(each)
        // Every five seconds, a request also reads the quotas of the account.
        const { status, beyond } = first.beyond === 1 ? await tripsBeyond(each) : first
        statuses.push(status)
        assert.equal(beyond, 0)
      }
      assert.deepEqual(statuses, [...contents.map(() => 202), 202, 202, 202, 409, 404, 202])
      assert.equal(network.calls(), 0)

      // The watch does notice a connection.
      await once(connect(Number(new URL(service.url).port), '127.0.0.1').end(), 'close')
      assert.equal(network.calls(), 1)
      network.stop()
    })
  }
})
