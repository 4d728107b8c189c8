import assert from 'node:assert/strict'
import { createHmac, randomBytes, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { changeAgent } from '../../../src/agents/agents.ts'
import { writePostback } from '../../../src/carriers/google-rbm/postback.ts'
import { transaction } from '../../../src/db/pool.ts'
import { installationSecret } from '../../../src/db/secrets.ts'
import { createEventTaker } from '../../../src/delivery/receipts.ts'
import { processReplies } from '../../../src/delivery/replies.ts'
import { deleteTemplate } from '../../../src/templates/templates.ts'
import { keyring } from '../../support/keyring.ts'
import { startNetwork } from '../../support/network.ts'
import { call, startTestService } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { CARRIER, createCarrier, createSender, type Sender, startWorker } from '../support.ts'
import {
  actionsOf,
  did,
  ELSEWHERE,
  everything,
  logged,
  logger,
  MINUTE_MS,
  messagesOf,
  otherNode,
  PHONE,
  pool,
  sentMessage,
  TEXT,
  tapped,
  tell,
  tellBoth,
  template,
  triggering,
  url,
  WAITING,
  wrote,
} from './shared.ts'

// What people tap counts for the message it was on, once, and for nothing else.

describe('a tap', () => {
  const PLACE = { latitude: 52.52, longitude: 13.405 }
  const buttons = [
    { id: 'web', type: 'url', text: 'Web', url: 'https://example.com/a?b=c' },
    { id: 'yes', type: 'quick_reply', text: 'Yes', payload: 'order 7: yes' },
    { id: 'call', type: 'call', text: 'Call', phoneNumber: '+48221234567' },
    { id: 'map', type: 'location', text: 'Map', ...PLACE },
  ]
  const carousel = {
    type: 'CAROUSEL',
    data: { cards: [{ title: 'A' }, { title: 'B', buttons: [{ id: 'b.1', type: 'quick_reply', text: 'Take B', payload: 'b' }] }] },
  }
  const contact = { type: 'CONTACT', data: { name: 'Shop', phoneNumbers: ['+48221234567'] } }

  for (const [buttonId, content, expected] of [
    ['web', { ...TEXT, buttons }, { kind: 'clicked', text: 'Web', url: 'https://example.com/a?b=c' }],
    ['yes', { ...TEXT, buttons }, { kind: 'tapped', text: 'Yes', payload: 'order 7: yes' }],
    ['call', { ...TEXT, buttons }, { kind: 'tapped', text: 'Call' }],
    ['map', { ...TEXT, buttons }, { kind: 'tapped', text: 'Map' }],
    ['b.1', carousel, { kind: 'tapped', text: 'Take B', payload: 'b' }],
    ['$call-1', contact, { kind: 'tapped' }],
    ['$map', { type: 'LOCATION', data: PLACE }, { kind: 'tapped' }],
  ] as const) {
    test(`on ${buttonId} of a ${content.type} is of that message and button, and sends nothing`, async () => {
      const sender = await createSender(pool)
      const messageId = await sentMessage(sender, { content, agoMs: 2 * MINUTE_MS })
      await sentMessage(sender)
      await tell([tapped(sender, messageId, buttonId)])
      assert.deepEqual(await actionsOf(sender), [{ channel: 'rcs', agentId: sender.agentId, messageId, buttonId, ...expected }])
      assert.deepEqual(await messagesOf(sender), [])
    })
  }

  test('whose event comes twice, or at once to two nodes, counts once', async () => {
    const sender = await createSender(pool)
    const messageId = await sentMessage(sender, { content: triggering(await template(sender)) })
    const event = tapped(sender, messageId, 'more')
    await tellBoth([event, event])
    await tellBoth([event])
    assert.equal((await actionsOf(sender)).length, 1)
    assert.equal((await messagesOf(sender)).length, 1)
    await tell([tapped(sender, messageId, 'more')])
    assert.equal((await actionsOf(sender)).length, 2, 'another tap is another')
  })

  test('that is taken up by a node which loses its database in the middle is neither lost nor doubled', async () => {
    const sender = await createSender(pool)
    const messageId = await sentMessage(sender, { content: triggering(await template(sender)) })
    await createEventTaker(pool, () => {})([tapped(sender, messageId, 'more')])
    await transaction(pool, async (tx) => {
      await tx.query('lock table queue in exclusive mode')
      const takingUp = assert.rejects(processReplies(otherNode, logger))
      await until('its connection waits, and is ended', async () => {
        const { rows } = await pool.query<{ pid: number }>(WAITING)
        for (const { pid } of rows) await pool.query('select pg_terminate_backend($1)', [pid])
        return rows.length
      })
      await takingUp
    })
    assert.deepEqual([await actionsOf(sender), await messagesOf(sender)], [[], []])
    await Promise.all([processReplies(pool, logger), processReplies(otherNode, logger)])
    assert.deepEqual([(await actionsOf(sender)).length, (await messagesOf(sender)).length], [1, 1])
  })
})

describe('a tap changes nothing, and is told in the log without its number and text, where', async () => {
  const { settings } = await startNetwork()
  const rcs = [CARRIER, ELSEWHERE].map((name) => ({ ...settings, name }))
  const service = await startTestService(
    { HERALD_DATABASE_URL: url },
    { roles: ['api'], findCarriers: async () => ({ rcs, sms: undefined }) },
  )
  const key = await installationSecret(pool, 'postback', keyring)
  const sender = await createSender(pool)
  const messageId = await sentMessage(sender, { content: triggering(await template(sender), 'go') })
  const real = writePostback(key, { messageId, buttonId: 'go' })

  /** As Google sends it. Returns what the service wrote to its log about it, before and while it was taken up. */
  async function post(postbackData: string, { phone = PHONE, agentId = sender.agentId, carrier = CARRIER } = {}): Promise<any[]> {
    const before = service.log().length
    const suggestionResponse = { postbackData, text: 'CANARY' }
    const event = {
      senderPhoneNumber: phone,
      agentId: `${agentId}@rbm.goog`,
      messageId: randomUUID(),
      sendTime: new Date(),
      suggestionResponse,
    }
    const bytes = Buffer.from(JSON.stringify(event))
    const signature = createHmac('sha512', settings.webhookToken).update(bytes).digest('base64')
    const body = { message: { data: bytes.toString('base64') } }
    const headers = { 'X-Goog-Signature': signature }
    assert.equal((await call(`${service.url}/carriers/${carrier}/webhook`, { method: 'POST', headers, body })).status, 200)
    const lines = await logged(() => processReplies(pool, logger))
    const told = service.log().slice(before)
    assert.doesNotMatch(told, /48500\d{6}|CANARY/)
    const warnings = told.split('\n').filter((line) => line.includes('"level":"warn"'))
    return [...lines, ...warnings.map((line) => JSON.parse(line))]
  }

  async function assertIgnored(lines: any[], reason: string): Promise<void> {
    assert.deepEqual(
      lines.map((line) => [line.level, line.carrier === undefined, line.reason]),
      [['warn', false, reason]],
    )
  }

  const NOT_OURS = 'a tap on a button that is not ours'
  const replaceAt = (index: number, character: string) => `${real.slice(0, index)}${character}${real.slice(index + 1)}`

  test('its postback is forged, cut, or altered in any character but the last', async () => {
    const before = await everything()
    const altered = Array.from(real.slice(0, -1), (character, index) => replaceAt(index, character === 'x' ? 'y' : 'x'))
    const cut = [real.slice(0, -1), real.slice(1), `${real} `, `${real}x`, `${real}\n`, real.split(':').slice(0, 3).join(':')]
    const foreign = writePostback(randomBytes(32), { messageId, buttonId: 'go' })
    for (const postback of [...altered, ...cut, foreign, 'go', '']) await assertIgnored(await post(postback), NOT_OURS)
    assert.deepEqual(await everything(), before)
  })

  test('its postback is genuine, and comes from another phone, for another agent, over another carrier, or of no message', async () => {
    const before = await everything()
    const other = await createSender(pool)
    const reason = 'no message from this agent to this phone has the button'
    await assertIgnored(await post(real, { phone: '+48500100298' }), reason)
    await assertIgnored(await post(real, { agentId: other.agentId }), reason)
    await assertIgnored(await post(real, { carrier: ELSEWHERE }), reason)
    await assertIgnored(await post(writePostback(key, { messageId: randomUUID(), buttonId: 'go' })), reason)
    assert.deepEqual(await everything(), before)
  })

  test('and only there: the genuine one from its phone counts', async () => {
    assert.deepEqual(await post(real), [])
    assert.deepEqual([(await actionsOf(sender)).length, (await messagesOf(sender)).length], [1, 1])
  })

  test('the last character of its signature is any other', async () => {
    const before = await everything()
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    for (const letter of letters.replace(real.at(-1) as string, ''))
      await assertIgnored(await post(replaceAt(real.length - 1, letter)), NOT_OURS)
    assert.deepEqual(await everything(), before)
  })
})

describe('a button that sends a template', () => {
  for (const isTest of [false, true]) {
    test(`sends it as a message of its own, ${isTest ? 'a test as the first' : 'as what the recipient asked for'}`, async (t) => {
      const sender = await createSender(pool)
      const message = { ...TEXT, content: 'More of it', buttons: [{ id: 'yes', type: 'quick_reply', text: 'Yes', payload: 'p' }] }
      const content = triggering(await template(sender, message))
      const first = await sentMessage(sender, { content, test: isTest })
      await tell([tapped(sender, first, 'more')])
      const [{ id, ...sent }, ...others] = await messagesOf(sender)
      const expected = {
        agentId: sender.agentId,
        traffic: 'SERVICEREQUEST',
        triggeredBy: first,
        test: isTest,
        content: message,
        task: 'send',
      }
      assert.deepEqual([sent, others], [expected, []])
      await tell([tapped(sender, id, 'yes')])
      assert.deepEqual(
        (await actionsOf(sender)).map(({ messageId, buttonId }) => [messageId, buttonId]),
        [
          [first, 'more'],
          [id, 'yes'],
        ],
      )

      const asked: unknown[] = []
      const carrier = createCarrier({
        onSend: ({ messageId, traffic, recipient }) => {
          if (messageId === id) asked.push([traffic, recipient])
          return { is: 'sent', carrierMessageId: messageId }
        },
      })
      startWorker(t, url, carrier)
      await until('the network has it', () => asked.length > 0)
      assert.deepEqual(asked, [['SERVICEREQUEST', PHONE]])
    })
  }

  for (const [why, change] of [
    ['not-approved', async (_: Sender, id: number) => await pool.query(`update templates set status = 'DRAFT' where id = $1`, [id])],
    ['no-template', async ({ accountId }: Sender, id: number) => await deleteTemplate(pool, accountId, id)],
    ['no-agent', async ({ accountId, agentId }: Sender) => await changeAgent(pool, accountId, agentId, { active: false })],
  ] as const) {
    test(`sends nothing where the answer is ${why}; the tap is kept, and the log says so`, async () => {
      const sender = await createSender(pool)
      const templateId = await template(sender)
      const messageId = await sentMessage(sender, { content: triggering(templateId) })
      await change(sender, templateId)
      const lines = await logged(() => tell([tapped(sender, messageId, 'more')]))
      assert.deepEqual(
        lines.map(({ level, reason }) => [level, reason]),
        [['warn', `the template was not sent: ${why}`]],
      )
      assert.deepEqual([(await actionsOf(sender)).length, await messagesOf(sender)], [1, []])
    })
  }

  test('never sends that of another account', async () => {
    const [sender, other] = [await createSender(pool), await createSender(pool)]
    const messageId = await sentMessage(sender, { content: triggering(await template(other)) })
    const lines = await logged(() => tell([tapped(sender, messageId, 'more')]))
    assert.deepEqual(
      lines.map(({ reason }) => reason),
      ['the template was not sent: no-template'],
    )
    assert.deepEqual([await messagesOf(sender), await messagesOf(other)], [[], []])
  })

  test('tapped eleven times in a minute sends ten; and one more when a minute has passed since the first', async () => {
    const sender = await createSender(pool)
    const messageId = await sentMessage(sender, { content: triggering(await template(sender)) })
    for (let tap = 0; tap < 11; tap += 1) await tell([tapped(sender, messageId, 'more')])
    assert.equal((await messagesOf(sender)).length, 10)
    assert.equal((await actionsOf(sender)).length, 11)
    const [first] = await messagesOf(sender)
    await pool.query(`update messages set id = uuid_v7_from(now() - interval '61 seconds') where id = $1`, [first.id])
    await tell([tapped(sender, messageId, 'more')])
    assert.equal((await messagesOf(sender)).length, 11)
  })

  test('tapped by many at once, on two nodes, sends no more than the minute has left', async () => {
    const sender = await createSender(pool)
    const messageId = await sentMessage(sender, { content: triggering(await template(sender)) })
    await tell(Array.from({ length: 9 }, () => tapped(sender, messageId, 'more')))
    assert.equal((await messagesOf(sender)).length, 9)
    await createEventTaker(pool, () => {})(Array.from({ length: 8 }, () => tapped(sender, messageId, 'more')))
    // They are held where they send: each has counted by then what there was before.
    const takingUp = await transaction(pool, async (tx) => {
      await tx.query('lock table queue in exclusive mode')
      const all = [pool, otherNode].map((node) => processReplies(node, logger))
      await until('several wait', async () => ((await pool.query(WAITING)).rowCount ?? 0) >= 4)
      return all
    })
    await Promise.all(takingUp)
    assert.equal((await actionsOf(sender)).length, 17)
    assert.equal((await messagesOf(sender)).length, 10)
  })
})

test('one event that can’t be taken up holds up no other, is told without its data, and is tried again', async () => {
  const sender = await createSender(pool)
  const messageId = await sentMessage(sender)
  const broken = did(sender, { kind: 'wrote', canary: 'CANARY' })
  const texts = Array.from({ length: 10 }, (_, index) => wrote(sender, `Text ${index}`))
  const lines = await logged(() => tell([broken, ...texts]))
  assert.deepEqual(
    lines.map(({ level }) => level),
    ['error'],
  )
  assert.equal((await actionsOf(sender)).length, 10)
  const mended = { ...broken, text: 'Mended' }
  const { rowCount } = await pool.query(
    `update carrier_events set event = $2, process_after = now() where event_id = $1 and process_after between now() + interval '50 seconds' and now() + interval '1 minute'`,
    [broken.eventId, JSON.stringify(mended)],
  )
  assert.equal(rowCount, 1, 'it is due again in a minute')
  await processReplies(pool, logger)
  const written = { kind: 'wrote', channel: 'rcs', agentId: sender.agentId, messageId, text: 'Mended' }
  assert.ok((await actionsOf(sender)).some((action) => JSON.stringify(action) === JSON.stringify(written)))
})

test('an event that one node fails to take up, and another takes up in the same moment, is not taken up again', async () => {
  const sender = await createSender(pool)
  await sentMessage(sender)
  await pool.query(
    `create function fail() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(42); raise exception 'no'; end $$`,
  )
  await pool.query('create trigger fail before insert on recipient_actions for each row execute function fail()')
  let met = false
  // Once the first has failed, either may be the next to get at the row; what is asked about is when it is the other.
  for (let attempt = 0; !met && attempt < 50; attempt += 1) {
    const event = wrote(sender, 'Hello')
    await createEventTaker(pool, () => {})([event])
    met = await takeUpAtOnce(event.eventId)
    const { rows } = await pool.query('select process_after from carrier_events where event_id = $1', [event.eventId])
    assert.deepEqual(rows, [{ process_after: null }])
  }
  await pool.query('drop function fail cascade')
  assert.ok(met, 'the first never had to wait for the other')
})

/** One fails while another takes the event up; whether the first came to wait for that. */
async function takeUpAtOnce(eventId: string): Promise<boolean> {
  const count = async () => (await pool.query(WAITING)).rowCount
  let met = false
  let hasEnded = false
  let failing: Promise<unknown> | undefined
  let takingUp: Promise<void> | undefined
  await transaction(pool, async (tx) => {
    await tx.query('select pg_advisory_xact_lock(42)')
    failing = processReplies(pool, logger).finally(() => {
      hasEnded = true
    })
    await until('it is in the middle', async () => (await count()) === 1)
    takingUp = transaction(otherNode, async (other) => {
      await other.query('update carrier_events set process_after = null where event_id = $1', [eventId])
      await until('the first wants to try again later, or has put it off', async () => {
        met = (await count()) === 1
        return met || hasEnded
      })
    })
    await until('the other waits for it', async () => (await count()) === 2)
  })
  await Promise.all([failing, takingUp])
  return met
}
