import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { before, describe, test } from 'node:test'
import type { Command } from 'commander'
import { createAccount, MODULES } from '../../src/accounts/accounts.ts'
import { assignAgent, createAgent } from '../../src/agents/agents.ts'
import { createProgram } from '../../src/cli/program.ts'
import { installationSecret } from '../../src/db/secrets.ts'
import { fillGroup } from '../campaigns/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { KEY_FILE, keyring } from '../support/keyring.ts'
import { callerAt, newKey, smsFallback } from '../support/messages.ts'
import { heraldJson, runHerald } from '../support/process.ts'
import { dumpTables, findSecrets, type Secret } from '../support/search.ts'
import { call, startTestService } from '../support/service.ts'
import { startSimulator } from '../support/simulator.ts'
import { until } from '../support/until.ts'
import { startSink } from '../webhooks/support.ts'

// One run that uses every kind of secret; then everything that it has stored, logged, printed or sent in a response is searched for them.

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
const env = { HERALD_DATABASE_URL, HERALD_WEBHOOK_ALLOW_PRIVATE: 'true' }
const limits = { HERALD_LIMIT_MESSAGES_PER_SECOND: '1000', HERALD_LIMIT_OTHERS_PER_MINUTE: '1000' }
const simulator = await startSimulator()
const service = await startTestService(
  { ...env, ...limits, HERALD_PUBLIC_URL: 'https://go.example.com', HERALD_LOG_LEVEL: 'trace' },
  { findCarriers: async () => simulator.settings },
)
const sink = await startSink()

const AGENT = 'agent-secrets'
const WRONG_SECRET = `hs_${'W'.repeat(43)}`
const secrets: Secret[] = []
const ids = { accountId: 0, integrationKey: '', authorization: '', endpointId: 0, campaignId: '', messageIds: [] as string[] }

function keep(what: string, value: string | Buffer): void {
  secrets.push({ what, value })
}

async function makeKeys(): Promise<void> {
  ids.accountId = (await createAccount(pool, 'Searched', MODULES)).accountId
  const key = await heraldJson(['key', 'create', `${ids.accountId}`], env)
  const rotated = await heraldJson(['key', 'rotate', key.integrationKey, '--yes'], env)
  keep('the first secret of the integration key', key.secret)
  keep('the secret of the integration key', rotated.secret)
  keep('the secret of a request that was refused', WRONG_SECRET)
  ids.integrationKey = key.integrationKey
  ids.authorization = `Bearer ${key.integrationKey}:${rotated.secret}`
  keep('the Authorization header', `${key.integrationKey}:${rotated.secret}`)
  await createAgent(pool, { agentId: AGENT, name: 'searched', billingType: 'single', carrier: simulator.rcs.name })
  await assignAgent(pool, AGENT, ids.accountId)
}

async function makeWebhooks(): Promise<void> {
  const added = await heraldJson(['webhook', 'add', `${ids.accountId}`, sink.url], env)
  const rotated = await heraldJson(['webhook', 'rotate', `${added.endpointId}`, '--yes'], env)
  ids.endpointId = added.endpointId
  for (const { secret } of [added, rotated]) {
    keep('a webhook secret', secret)
    keep('the key of a webhook secret', Buffer.from(secret.slice('whsec_'.length), 'base64'))
  }
  await heraldJson(['webhook', 'test', `${added.endpointId}`], env)
}

async function keepInstallationSecrets(): Promise<void> {
  const { rows } = await pool.query<{ name: string }>('select name from secrets')
  for (const { name } of rows) keep(`the installation secret ${name}`, await installationSecret(pool, name, keyring))
  assert.ok(rows.length >= 2, 'postback and links')
  for (const line of readFileSync(KEY_FILE, 'utf8').trim().split('\n'))
    keep('an encryption key', Buffer.from(line.split(':')[1] ?? '', 'base64'))
}

function keepCarrierSecrets(): void {
  keep('the webhook token of the carrier', simulator.rcs.webhookToken)
  keep('the SMPP password', simulator.sms.password)
  const [, ...lines] = simulator.rcs.serviceAccount.private_key.trim().split('\n')
  for (const line of lines.slice(0, -1)) keep('the private key of the service account', line)
}

/** A message with a button that is tapped, one whose SMS has a short link, a campaign, and requests that are refused. */
async function sendAndReceive(): Promise<void> {
  const caller = callerAt(service.url, { ...ids, secret: '', agentId: AGENT })
  const buttons = [{ id: 'yes', type: 'quick_reply', text: 'Yes', payload: 'yes' }]
  const tapped = await caller.accepted({ recipient: '+48500100206', message: { inline: { type: 'MESSAGE', content: 'Tap', buttons } } })
  const link = smsFallback({}, { content: 'See https://example.com/offer', urlShortening: true })
  const bySms = await caller.accepted({ recipient: '+48500100203', smsFallback: link })
  ids.messageIds = [tapped, bySms]
  const templateId = await caller.template()
  await heraldJson(['auto-reply', 'add', `${ids.accountId}`, '--agent', AGENT, '--keyword', 'hours', '--template', `${templateId}`], env)
  await heraldJson(['opt-out', 'add', `${ids.accountId}`, '+48500100299', '--agent', AGENT], env)
  await fillGroup(pool, ids.accountId, 42, ['+48500100211', '+48500100212'])
  const campaign = { agentId: AGENT, name: 'Sale', segmentIds: [42], message: { inline: { type: 'MESSAGE', content: 'Hello' } } }
  const created = await caller.ask('POST', '/campaigns', campaign, { 'Idempotency-Key': newKey() })
  ids.campaignId = created.body.campaignId ?? created.body.id
  const wrong = `Bearer ${ids.integrationKey}:${WRONG_SECRET}`
  for (const path of ['/v1/agents', `/v1/messages/${tapped}`]) {
    assert.equal((await call(`${service.url}${path}`, { authorization: wrong })).status, 401)
  }
  const body = '{"not":"signed"}'
  const unsigned = await call(`${service.url}/carriers/${simulator.rcs.name}/webhook`, {
    method: 'POST',
    body,
    headers: { 'X-Goog-Signature': 'AAAA' },
  })
  assert.ok(unsigned.status >= 400)
  await until('the SMS is out', async () => ['SENT', 'DELIVERED'].includes((await caller.read(bySms)).body.smsFallback?.status))
  await until('events are posted', () => sink.arrived.length >= 5)
}

/** Commands that only read, as the program has them. */
function readCommands(program: Command): string[] {
  const reading = ['list', 'show', 'attempts', 'status']
  return program.commands.flatMap((group) =>
    group.commands.filter((command) => reading.includes(command.name())).map((command) => `${group.name()} ${command.name()}`),
  )
}

const ARGUMENTS: Record<string, () => string[]> = {
  'account list': () => [],
  'key list': () => [`${ids.accountId}`],
  'agent list': () => [],
  'message show': () => [ids.messageIds[0] as string],
  'campaign list': () => [`${ids.accountId}`],
  'campaign show': () => [ids.campaignId],
  'segment list': () => [`${ids.accountId}`],
  'segment show': () => [`${ids.accountId}`, '42'],
  'token list': () => [],
  'user list': () => [],
  'webhook list': () => [],
  'webhook attempts': () => [`${ids.endpointId}`],
  'auto-reply list': () => [],
  'opt-out list': () => [`${ids.accountId}`],
  'person show': () => ['+48500100206'],
  'encryption status': () => [],
}

/** Every GET route of the OpenAPI document that needs no more than what the run has made. */
async function everyGet(): Promise<string[]> {
  const { body: document } = await call(`${service.url}/v1/openapi.json`)
  const paths = Object.entries<Record<string, unknown>>(document.paths).flatMap(([path, methods]) => (methods.get ? [path] : []))
  const filled = paths.flatMap((path) =>
    path.includes('{messageId}')
      ? ids.messageIds.map((id) => path.replace('{messageId}', id))
      : [
          path
            .replace('/campaigns/{id}', `/campaigns/${ids.campaignId}`)
            .replace('{eventType}', 'sent')
            .replace('/templates/{id}', '/templates/1'),
        ],
  )
  return ['/healthz', '/readyz', '/docs', '/v1/openapi.json', ...filled.map((path) => `/v1${path}`)]
}

describe('no secret of a run is in plain text', () => {
  before(async () => {
    await simulator.ask('webhook', { url: `${service.url}/carriers/${simulator.rcs.name}/webhook` }, 'PUT')
    await makeKeys()
    await makeWebhooks()
    await sendAndReceive()
    await keepInstallationSecrets()
    keepCarrierSecrets()
    assert.ok(secrets.length >= 15, `${secrets.length} secrets`)
  })

  test('in any row of the database or its statistics', async () => {
    const dump = await dumpTables(pool)
    assert.ok(dump.get('public.integration_keys')?.includes(ids.integrationKey), 'the dump has what is stored')
    const found = [...dump].flatMap(([table, rows]) => findSecrets(secrets, rows).map((what) => `${table}: ${what}`))
    assert.deepEqual(found, [])
  })

  test('in the log at level trace', () => {
    assert.match(service.log(), /"route":"\/v1\/messages"/)
    assert.deepEqual(findSecrets(secrets, service.log()), [])
  })

  test('in the metrics', async () => {
    const { status, body } = await call(service.metricsUrl)
    assert.deepEqual([status, findSecrets(secrets, body)], [200, []])
  })

  test('in the output of any command that reads', async () => {
    const commands = readCommands(await createProgram())
    assert.deepEqual(new Set(commands), new Set(Object.keys(ARGUMENTS)), 'each has arguments here')
    for (const command of commands) {
      const args = [...command.split(' '), ...(ARGUMENTS[command]?.() ?? [])]
      const outputs = await Promise.all([runHerald(args, env), runHerald([...args, '--json'], env)])
      for (const { code, stdout, stderr } of outputs) {
        assert.deepEqual([command, code, findSecrets(secrets, stdout + stderr)], [command, 0, []])
      }
    }
  })

  test('in the response to any GET', async () => {
    const routes = await everyGet()
    assert.ok(routes.length >= 15, `${routes}`)
    for (const route of routes) {
      const { status, headers, body } = await call(`${service.url}${route}`, { authorization: ids.authorization })
      assert.ok(status < 500, `${route}: ${status}`)
      assert.deepEqual([route, findSecrets(secrets, JSON.stringify([[...headers], body]))], [route, []])
    }
  })
})
