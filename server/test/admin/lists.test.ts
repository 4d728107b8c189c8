import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAccount } from '../../src/accounts/accounts.ts'
import { createKey } from '../../src/accounts/keys.ts'
import { createToken } from '../../src/people/tokens.ts'
import { addAutoReply } from '../../src/replies/auto-replies.ts'
import { createTemplate } from '../../src/templates/templates.ts'
import { call, createAssignedAgent } from '../support/service.ts'
import { ADMIN, newPerson, pool, sessionOf } from './shared.ts'

/** These return all of a few items: they belong to one message, phone, agent or request, or to the configuration, or have a limit of their own. */
const WITHOUT_PAGES = 'readTimeline listAgents listPhones listPhoneSms listAccountCarriers listAccountTroubles'.split(' ')
/** The lists of the admin API, which `createItems` fills. For the lists of /v1, this test pages through whatever is there. */
const HAVE_ITEMS =
  `listSessions listAccounts listAllAgents listPeople listTokens listKeys listAssignments listAccountPeople listAutoReplies listPersonSessions`.split(
    ' ',
  )

const COUNT = 3
const { accountId } = await createAccount(pool, 'Lists', ['rcs', 'sms'])
const { personId } = await newPerson('operator')
const { personId: otherId } = await newPerson('operator')
const { ask } = await sessionOf(personId)
await createItems()

/** Adds a few items to every list. */
async function createItems(): Promise<void> {
  const template = { name: 'T', basic: false, status: 'APPROVED', message: { type: 'MESSAGE', content: 'Hello' } } as const
  const { id: templateId } = await createTemplate(pool, accountId, template)
  for (let n = 0; n < COUNT; n += 1) {
    await createAccount(pool, `Lists ${n}`, ['rcs'])
    await createKey(pool, accountId)
    const agentId = await createAssignedAgent(pool, accountId)
    for (const keyword of ['hours', 'prices']) await addAutoReply(pool, { accountId, agentId, keyword, templateId })
    await newPerson('viewer', [accountId])
    for (const each of [personId, otherId]) await sessionOf(each)
    await createToken(pool, { name: `${n}`, role: 'operator', accountIds: [], expiresAt: new Date(Date.now() + 3_600_000) })
  }
}

type List = { id: string; path: string }

async function lists(): Promise<List[]> {
  const { body } = await call(`${ADMIN}/openapi.json`)
  return Object.entries<any>(body.paths).flatMap(([path, { get }]) => {
    const properties = get?.responses['200']?.content?.['application/json']?.schema?.properties ?? {}
    return 'items' in properties ? [{ id: get.operationId, path }] : []
  })
}

/** The paths of what belongs to a campaign, a group or an endpoint have another id, and tests of their own. */
const pathOf = ({ path }: List) => path.replace('{accountId}', `${accountId}`).replace('{personId}', `${otherId}`)

async function readAll(path: string): Promise<unknown[]> {
  const all: unknown[] = []
  for (let cursor = ''; cursor !== 'null'; ) {
    const { status, body } = await ask('GET', `${path}?limit=1${cursor && `&cursor=${cursor}`}`)
    assert.equal(status, 200, `${path} ${JSON.stringify(body)}`)
    assert.ok(body.items.length <= 1, path)
    all.push(...body.items)
    cursor = String(body.nextCursor)
  }
  return all
}

async function assertRefused(path: string, code: string): Promise<void> {
  const { status, body } = await ask('GET', path)
  assert.deepEqual([status, body.code], [400, code], path)
}

// Each request is a use of the own session.
const withoutUse = (items: any[]) => items.map(({ lastUsedAt: _, ...item }) => item)

test('every list has pages, which have each item exactly once, and refuses wrong limits and cursors', async () => {
  const cursors = new Map<string, string>()
  const found = (await lists()).filter(({ id }) => !WITHOUT_PAGES.includes(id) && id !== 'followEvents')
  for (const list of found.filter((each) => !pathOf(each).includes('{'))) {
    const path = pathOf(list)
    const { status, body } = await ask('GET', `${path}?limit=200`)
    assert.deepEqual([status, body.nextCursor], [200, null], `${list.id} ${JSON.stringify(body)}`)
    if (HAVE_ITEMS.includes(list.id)) assert.ok(body.items.length >= COUNT, `${list.id} has ${body.items.length} items`)
    assert.deepEqual(withoutUse(await readAll(path)), withoutUse(body.items), list.id)
    for (const limit of ['0', '201', 'x']) await assertRefused(`${path}?limit=${limit}`, 'RCS_INVALID_REQUEST')
    await assertRefused(`${path}?cursor=x`, 'RCS_INVALID_CURSOR')
    const { nextCursor } = (await ask('GET', `${path}?limit=1`)).body
    if (nextCursor !== null) cursors.set(path, nextCursor)
  }
  assert.ok(cursors.size >= HAVE_ITEMS.length)
  for (const path of cursors.keys()) {
    for (const [other, cursor] of cursors) if (other !== path) await assertRefused(`${path}?cursor=${cursor}`, 'RCS_INVALID_CURSOR')
  }
})
