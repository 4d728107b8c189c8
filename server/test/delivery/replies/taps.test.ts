import assert from 'node:assert/strict'
import { createHmac, randomBytes, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { changeAgent } from '../../../src/agents/agents.ts'
import { writePostback } from '../../../src/carriers/google-rbm/postback.ts'
import { transaction } from '../../../src/db/pool.ts'
import { installationSecret } from '../../../src/db/secrets.ts'
import { createEventReceiver } from '../../../src/delivery/receipts.ts'
import { processReplies } from '../../../src/delivery/replies.ts'
import { createTemplate, deleteTemplate, replaceTemplate } from '../../../src/templates/templates.ts'
import { ownerOf } from '../../support/database.ts'
import { erased } from '../../support/erased.ts'
import { keyring } from '../../support/keyring.ts'
import { startNetwork } from '../../support/network.ts'
import { call, startTestService } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { untilBlocked } from '../locks.ts'
import { createSender, type Sender } from '../support.ts'
import { CARRIER, createCarrier, sent, startWorker } from '../worker.ts'
import { logged, logger, otherNode, pool, url } from './nodes.ts'
import { did, ELSEWHERE, PHONE, receiveReplies, receiveRepliesOnBothNodes, tapped, wrote } from './recipients.ts'
import { actionsOf, everything, MINUTE_MS, messagesOf, sentMessage, TEXT, template, triggering, WAITING } from './shared.ts'

// A tap counts once, for the message that has the button.

/** How many actions and triggered messages there are. */
const countsOf = async (sender: Sender) => [(await actionsOf(sender)).length, (await messagesOf(sender)).length]
const store = createEventReceiver(pool, () => {}, erased)

/** A sender, and its message with a button that sends a template. */
async function withTrigger(made: object = {}): Promise<Sender & { messageId: string; templateId: number }> {
  const sender = await createSender(pool)
  const templateId = await template(sender)
  return { ...sender, templateId, messageId: await sentMessage(sender, { content: triggering(templateId), ...made }) }
}

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
    test(`on ${buttonId} of a ${content.type} is attributed to its message and button, and sends nothing`, async () => {
      const sender = await createSender(pool)
      const messageId = await sentMessage(sender, { content, agoMs: 2 * MINUTE_MS })
      await sentMessage(sender)
      await receiveReplies([tapped(sender, messageId, buttonId)])
      assert.deepEqual(await actionsOf(sender), [{ channel: 'rcs', agentId: sender.agentId, messageId, buttonId, ...expected }])
      assert.deepEqual(await messagesOf(sender), [])
    })
  }

  test('counts once if its event comes again, or to two nodes at the same moment', async () => {
    const sender = await withTrigger()
    const event = tapped(sender, sender.messageId, 'more')
    await receiveRepliesOnBothNodes([event, event])
    await receiveRepliesOnBothNodes([event])
    assert.deepEqual(await countsOf(sender), [1, 1])
    await receiveReplies([tapped(sender, sender.messageId, 'more')])
    assert.equal((await countsOf(sender))[0], 2, 'another tap is another action')
  })

  test('is neither lost nor doubled if a node loses the database while it processes the event', async () => {
    const sender = await withTrigger()
    await store([tapped(sender, sender.messageId, 'more')])
    await transaction(pool, async (tx) => {
      await tx.query('lock table queue in exclusive mode')
      const processing = assert.rejects(processReplies(otherNode, logger, erased))
      await until('its connection waits, and is ended', async () => {
        const { rows } = await ownerOf(pool).query<{ pid: number }>(WAITING)
        for (const { pid } of rows) await ownerOf(pool).query('select pg_terminate_backend($1)', [pid])
        return rows.length
      })
      await processing
    })
    assert.deepEqual(await countsOf(sender), [0, 0])
    await Promise.all([processReplies(pool, logger, erased), processReplies(otherNode, logger, erased)])
    assert.deepEqual(await countsOf(sender), [1, 1])
  })
})

describe('a tap changes nothing, and is logged without its number and text, if', async () => {
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

  /** Posts a tap as Google does. Returns what is logged about it when it is stored and processed. */
  async function post(postbackData: string, { phone = PHONE, agentId = sender.agentId, carrier = CARRIER } = {}): Promise<any[]> {
    const before = service.log().length
    const about = { senderPhoneNumber: phone, agentId: `${agentId}@rbm.goog`, messageId: randomUUID(), sendTime: new Date() }
    const bytes = Buffer.from(JSON.stringify({ ...about, suggestionResponse: { postbackData, text: 'CANARY' } }))
    const signature = createHmac('sha512', settings.webhookToken).update(bytes).digest('base64')
    const body = { message: { data: bytes.toString('base64') } }
    const headers = { 'X-Goog-Signature': signature }
    assert.equal((await call(`${service.url}/carriers/${carrier}/webhook`, { method: 'POST', headers, body })).status, 200)
    const lines = await logged(() => processReplies(pool, logger, erased))
    const log = service.log().slice(before)
    assert.doesNotMatch(log, /48500\d{6}|CANARY/)
    const warnings = log.split('\n').filter((line) => line.includes('"level":"warn"'))
    return [...lines, ...warnings.map((line) => JSON.parse(line))]
  }

  /** Posts taps, and fails unless each is logged with this reason and changes nothing. */
  async function assertIgnored(reason: string, taps: [postback: string, from?: Parameters<typeof post>[1]][]): Promise<void> {
    const before = await everything()
    for (const [postback, from] of taps) {
      const [line, ...more] = await post(postback, from)
      assert.deepEqual([line.level, typeof line.carrier, line.reason, more], ['warn', 'string', reason, []], postback)
    }
    assert.deepEqual(await everything(), before)
  }

  const NOT_OURS = 'a tap on a button that is not ours'
  const replaceAt = (index: number, character: string) => `${real.slice(0, index)}${character}${real.slice(index + 1)}`

  test('its postback is forged, cut, or altered in any character but the last', async () => {
    const altered = Array.from(real.slice(0, -1), (character, index) => replaceAt(index, character === 'x' ? 'y' : 'x'))
    const cut = [real.slice(0, -1), real.slice(1), `${real} `, `${real}x`, `${real}\n`, real.split(':').slice(0, 3).join(':')]
    const foreign = writePostback(randomBytes(32), { messageId, buttonId: 'go' })
    await assertIgnored(
      NOT_OURS,
      [...altered, ...cut, foreign, 'go', ''].map((postback) => [postback]),
    )
  })

  test('its postback is genuine, but comes from another phone, agent or carrier, or names no message', async () => {
    const other = await createSender(pool)
    await assertIgnored('no message from this agent to this phone has the button', [
      [real, { phone: '+48500100298' }],
      [real, { agentId: other.agentId }],
      [real, { carrier: ELSEWHERE }],
      [writePostback(key, { messageId: randomUUID(), buttonId: 'go' })],
    ])
  })

  test('the last character of its signature is another one; but the genuine tap from its phone counts', async () => {
    assert.deepEqual(await post(real), [])
    assert.deepEqual(await countsOf(sender), [1, 1])
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'.replace(real.at(-1) as string, '')
    await assertIgnored(
      NOT_OURS,
      [...letters].map((letter) => [replaceAt(real.length - 1, letter)]),
    )
  })
})

describe('a button that sends a template', () => {
  for (const isTest of [false, true]) {
    test(`sends it as a SERVICEREQUEST, ${isTest ? 'as a test like' : 'no test, like'} the first message`, async (t) => {
      const sender = await createSender(pool)
      const message = { ...TEXT, content: 'More of it', buttons: [{ id: 'yes', type: 'quick_reply', text: 'Yes', payload: 'p' }] }
      const first = await sentMessage(sender, { content: triggering(await template(sender, message)), test: isTest })
      await receiveReplies([tapped(sender, first, 'more')])
      const [{ id, ...triggered }, ...others] = await messagesOf(sender)
      const facts = { agentId: sender.agentId, traffic: 'SERVICEREQUEST', triggeredBy: first, test: isTest, content: message, task: 'send' }
      assert.deepEqual([triggered, others], [facts, []])
      await receiveReplies([tapped(sender, id, 'yes')])
      const actions = (await actionsOf(sender)).map(({ messageId, buttonId }) => `${messageId} ${buttonId}`)
      assert.deepEqual(actions, [`${first} more`, `${id} yes`])

      const calls: unknown[] = []
      const onSend = (call: { messageId: string; traffic: string; recipient: string }) => {
        if (call.messageId === id) calls.push([call.traffic, call.recipient])
        return sent(call)
      }
      startWorker(t, url, createCarrier({ onSend }))
      await until('the network has it', () => calls.length > 0)
      assert.deepEqual(calls, [['SERVICEREQUEST', PHONE]])
    })
  }

  for (const [name, why, change] of [
    ['is not approved', 'not-approved', (_: Sender, id: number) => pool.query(`update templates set status = 'DRAFT' where id = $1`, [id])],
    ['has an inactive agent', 'no-agent', ({ accountId, agentId }: Sender) => changeAgent(pool, accountId, agentId, { active: false })],
  ] as const) {
    test(`sends nothing if the template ${name}, stores the tap, and logs why`, async () => {
      const sender = await withTrigger()
      await change(sender, sender.templateId)
      const [line, ...more] = await logged(() => receiveReplies([tapped(sender, sender.messageId, 'more')]))
      assert.deepEqual([line.level, line.reason, more], ['warn', `the template was not sent: ${why}`, []])
      assert.deepEqual(await countsOf(sender), [1, 0])
    })
  }

  test('sends a template with variables with their defaults, and nothing if one has none', async () => {
    const sender = await createSender(pool)
    const message = (content: string) => ({ type: 'MESSAGE', content })
    const [complete, incomplete] = [
      await template(sender, message('Hello {{name|there}}')),
      await template(sender, message('Hello {{name}}')),
    ]
    const messageId = await sentMessage(sender, { content: triggering(complete) })
    await receiveReplies([tapped(sender, messageId, 'more')])
    assert.deepEqual(
      (await messagesOf(sender)).map(({ content }) => content),
      [message('Hello there')],
    )
    const other = await sentMessage(sender, { content: triggering(incomplete) })
    const [line] = await logged(() => receiveReplies([tapped(sender, other, 'more')]))
    assert.match(line.reason, /^the template was not sent: the template \d+ has the variable name, which has no value and no default$/)
    assert.deepEqual(await countsOf(sender), [2, 1])
  })

  test('sends the template as it was at the acceptance of the message, if both templates were deleted since', async () => {
    const sender = await createSender(pool)
    const { accountId } = sender
    const write = (content: string, status: 'APPROVED' | 'DRAFT' = 'APPROVED') => ({
      name: 'T',
      basic: false,
      status,
      message: { type: 'MESSAGE' as const, content },
    })
    const { id: target } = await createTemplate(pool, accountId, write('a draft', 'DRAFT'))
    const user = await template(sender, triggering(target))
    const messages: string[] = []
    for (const content of ['one', 'two', 'three']) {
      // The message has the content of the template `user`, and keeps it when that template is deleted.
      messages.push(await sentMessage(sender, { content: triggering(target), agoMs: 0 }))
      await replaceTemplate(pool, accountId, target, write(content))
    }
    messages.push(await sentMessage(sender, { content: triggering(target), agoMs: 0 }))
    await assert.rejects(deleteTemplate(pool, accountId, target), { code: 'RCS_TEMPLATE_IN_USE' })
    await deleteTemplate(pool, accountId, user)
    await receiveReplies([tapped(sender, messages[1] as string, 'more')])
    await deleteTemplate(pool, accountId, target)
    for (const messageId of messages) await receiveReplies([tapped(sender, messageId, 'more')])
    const expected = [
      ['three', messages[1]],
      ['one', messages[1]],
      ['two', messages[2]],
      ['three', messages[3]],
    ]
    assert.deepEqual(
      (await messagesOf(sender)).map(({ content, triggeredBy }) => [content.content, triggeredBy]),
      expected,
      'as it is while it exists, and then as it was; a draft is never sent',
    )
  })

  test('never sends a template of another account, deleted or not', async () => {
    const [sender, other] = [await createSender(pool), await createSender(pool)]
    const foreign = await template(other)
    const messageId = await sentMessage(sender, { content: triggering(foreign) })
    for (const change of [async () => {}, () => deleteTemplate(pool, other.accountId, foreign)]) {
      await change()
      const [line] = await logged(() => receiveReplies([tapped(sender, messageId, 'more')]))
      assert.equal(line.reason, 'the template was not sent: no-template')
    }
    assert.deepEqual([await messagesOf(sender), await messagesOf(other)], [[], []])
  })

  test('sends ten messages a minute, and one more when a minute has passed since the first', async () => {
    const sender = await withTrigger()
    for (let tap = 0; tap < 11; tap += 1) await receiveReplies([tapped(sender, sender.messageId, 'more')])
    assert.deepEqual(await countsOf(sender), [11, 10])
    const [first] = await messagesOf(sender)
    await pool.query(`update messages set id = uuid_v7_from(now() - interval '61 seconds') where id = $1`, [first.id])
    await receiveReplies([tapped(sender, sender.messageId, 'more')])
    assert.equal((await messagesOf(sender)).length, 11)
  })

  test('sends no more than the limit of a minute allows, even if two nodes process many taps at once', async () => {
    const sender = await withTrigger()
    const taps = (count: number) => Array.from({ length: count }, () => tapped(sender, sender.messageId, 'more'))
    await receiveReplies(taps(9))
    assert.equal((await messagesOf(sender)).length, 9)
    await store(taps(8))
    // The lock holds them where they send: each has counted the messages by then.
    const processing = await transaction(pool, async (tx) => {
      await tx.query('lock table queue in exclusive mode')
      const all = [pool, otherNode].map((node) => processReplies(node, logger, erased))
      await untilBlocked(pool, 4)
      return all
    })
    await Promise.all(processing)
    assert.deepEqual(await countsOf(sender), [17, 10])
  })
})

test('an event that can’t be processed delays no other, is logged without its data, and is retried', async () => {
  const sender = await createSender(pool)
  const messageId = await sentMessage(sender)
  const broken = did(sender, { kind: 'wrote', canary: 'CANARY' })
  const texts = Array.from({ length: 10 }, (_, index) => wrote(sender, `Text ${index}`))
  const since = new Date()
  const lines = await logged(() => receiveReplies([broken, ...texts]))
  assert.deepEqual([lines.length, lines[0].level], [1, 'error'])
  assert.equal((await actionsOf(sender)).length, 10)
  const { rowCount } = await pool.query(
    `update carrier_events set event = $2, process_after = now()
     where event_id = $1 and process_after between $3::timestamptz + interval '1 minute' and now() + interval '1 minute'`,
    [broken.eventId, JSON.stringify({ ...broken, text: 'Fixed' }), since],
  )
  assert.equal(rowCount, 1, 'it is due again in a minute')
  await processReplies(pool, logger, erased)
  const fixed = (await actionsOf(sender)).filter(({ text }) => text === 'Fixed')
  assert.deepEqual(fixed, [{ kind: 'wrote', channel: 'rcs', agentId: sender.agentId, messageId, text: 'Fixed' }])
})

test('an event that one node fails to process while another processes it is not processed again', async () => {
  const sender = await createSender(pool)
  await sentMessage(sender)
  await ownerOf(pool).query(
    `create function fail() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(42); raise exception 'no'; end $$`,
  )
  await ownerOf(pool).query('create trigger fail before insert on recipient_actions for each row execute function fail()')
  let hasWaited = false
  // After the first node has failed, either node may get the row next. The test is about the case that the other one does.
  for (let attempt = 0; !hasWaited && attempt < 50; attempt += 1) {
    const event = wrote(sender, 'Hello')
    await store([event])
    hasWaited = await processOnTwoNodes(event.eventId)
    const { rows } = await pool.query('select process_after from carrier_events where event_id = $1', [event.eventId])
    assert.deepEqual(rows, [{ process_after: null }])
  }
  await ownerOf(pool).query('drop function fail cascade')
  assert.ok(hasWaited, 'the first node never had to wait for the other')
})

/** One node fails while another processes the event. Returns whether the first had to wait for the other. */
async function processOnTwoNodes(eventId: string): Promise<boolean> {
  const countWaiting = async () => (await ownerOf(pool).query(WAITING)).rowCount
  let hasWaited = false
  let hasEnded = false
  let both: Promise<unknown>[] = []
  await transaction(pool, async (tx) => {
    await tx.query('select pg_advisory_xact_lock(42)')
    const failing = processReplies(pool, logger, erased).finally(() => {
      hasEnded = true
    })
    await untilBlocked(pool, 1)
    const processing = transaction(otherNode, async (other) => {
      await other.query('update carrier_events set process_after = null where event_id = $1', [eventId])
      await until('the first node waits to postpone the event, or has done so', async () => {
        hasWaited = (await countWaiting()) === 1
        return hasWaited || hasEnded
      })
    })
    both = [failing, processing]
    await untilBlocked(pool, 2)
  })
  await Promise.all(both)
  return hasWaited
}
