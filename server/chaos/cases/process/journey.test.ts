import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createDataDir, heraldJson, startHerald } from '../../../test/support/process.ts'
import { call } from '../../../test/support/service.ts'
import { until } from '../../../test/support/until.ts'
import { startSink } from '../../../test/webhooks/support.ts'

// The first ten minutes of a new user, on the real service with its embedded database and its simulated network.

const PHONE = '+48500100200'

test('the journey of a new user, from the first start to the first export', async (t) => {
  const startedAt = performance.now()
  let lastAt = startedAt
  const done = (step: string) => {
    t.diagnostic(`${step}: ${((performance.now() - lastAt) / 1_000).toFixed(1)} s`)
    lastAt = performance.now()
  }
  const dataDir = await createDataDir()
  const env = {
    HERALD_DATA_DIR: dataDir,
    HERALD_SIMULATOR_DELAY_MS: '100',
    HERALD_LIMIT_OTHERS_PER_MINUTE: '10000',
  }

  const herald = await startHerald(env, [], ['serve'])
  const { accountId, authorization } = JSON.parse(readFileSync(join(dataDir, 'demo.json'), 'utf8'))
  const simulator = /phones get is at (\S+)\/simulator\/phones/.exec(herald.output.stderr)?.[1]
  const ask = async (method: string, path: string, body?: unknown) => {
    const headers = { 'Idempotency-Key': `${method} ${path} ${JSON.stringify(body)}`.slice(0, 255) }
    const response = await call(`${herald.url}/v1${path}`, { method, authorization, headers, ...(body !== undefined && { body }) })
    assert.ok(response.status < 300, `${method} ${path}: ${response.status} ${JSON.stringify(response.body)}`)
    return response.body
  }
  const statusOf = async (id: string) => (await ask('GET', `/messages/${id}`)).status
  assert.match((await call(`${herald.url}/`)).body, /API reference/)
  assert.equal((await call(`${herald.url}/docs`)).status, 200)
  done('start')

  const sink = await startSink()
  const { secret } = await heraldJson(['webhook', 'add', `${accountId}`, sink.url], env)
  assert.match(secret, /^whsec_/)
  done('webhook endpoint')

  const content = {
    type: 'MESSAGE',
    content: 'Is Friday fine?',
    buttons: [{ id: 'yes', type: 'quick_reply', text: 'Yes', payload: 'friday' }],
  }
  const { messageId } = await ask('POST', '/messages', { agentId: 'demo-single', recipient: PHONE, message: { inline: content } })
  await until('the message is READ', async () => (await statusOf(messageId)) === 'READ')
  done('send, until READ')

  const phone = await call(`${simulator}/simulator/phones/${PHONE}`)
  assert.ok(JSON.stringify(phone.body).includes('Is Friday fine?'))
  const tap = await call(`${simulator}/simulator/phones/${PHONE}/tap`, { method: 'POST', body: { messageId, button: 'Yes' } })
  assert.ok(tap.status < 300, JSON.stringify(tap.body))
  const kinds = () => sink.arrived.map(({ event }) => event.type)
  await until('the tap is posted', () => kinds().includes('message.replied'))
  assert.deepEqual(
    ['message.sent', 'message.delivered', 'message.read'].filter((kind) => !kinds().includes(kind)),
    [],
  )
  const { items } = await ask('GET', `/messages/${messageId}/timeline`)
  const steps = items.map(({ step }: { step: string }) => step)
  for (const step of ['accepted', 'sent', 'delivered', 'read', 'tapped', 'webhook-attempt']) assert.ok(steps.includes(step), step)
  done('see the phone, tap, webhook, timeline')

  const fallback = { planParams: { sender: 'MyShop' }, smsMessagesPlan: [{ content: 'Your parcel is on its way.' }] }
  const noRcs = {
    agentId: 'demo-single',
    recipient: '+48500100202',
    message: { inline: { type: 'MESSAGE', content: 'Hello' } },
    smsFallback: fallback,
  }
  const { messageId: byS } = await ask('POST', '/messages', noRcs)
  await until('the SMS is delivered', async () => (await ask('GET', `/messages/${byS}`)).smsFallback.status === 'DELIVERED')
  done('SMS fallback')

  const file = join(dataDir, 'customers.csv')
  writeFileSync(file, ['phone,city', ...Array.from({ length: 50 }, (_, n) => `+485003001${10 + n},Gdynia`)].join('\n'))
  await heraldJson(['group', 'import', `${accountId}`, '42', file, '--name', 'Customers'], env)
  const campaign = { name: 'Spring', agentId: 'demo-single', segmentIds: [42], message: { inline: { type: 'MESSAGE', content: 'Hello' } } }
  const { campaignId } = await ask('POST', '/campaigns', campaign)
  await until('all recipients have read it', async () => (await ask('GET', `/campaigns/${campaignId}`)).counts.READ === 50)
  done('import and campaign')

  const summary = await ask('GET', `/reports/campaigns/${campaignId}/summary`)
  assert.deepEqual([summary.accepted, summary.read], [50, 50])
  const csv = String(await ask('GET', '/reports/messages/export'))
  assert.ok(csv.includes(messageId) && csv.trim().split('\n').length === 3)
  done('report and export')

  herald.child.kill('SIGINT')
  assert.equal(await herald.ended, 0)
  t.diagnostic(`the whole journey took ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`)
})
