import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { after, describe, test } from 'node:test'
import { findCampaign } from '../../src/campaigns/campaigns.ts'
import { confirm } from '../../src/cli/confirm.ts'
import { recordEvent } from '../../src/events/changes.ts'
import { addAutoReply } from '../../src/replies/auto-replies.ts'
import { changeOptOut } from '../../src/replies/opt-outs.ts'
import { createTemplate } from '../../src/templates/templates.ts'
import { addEndpoint } from '../../src/webhooks/endpoints.ts'
import { acceptedCampaign, fillGroup, makeAll, phones } from '../campaigns/support.ts'
import { createSender } from '../delivery/support.ts'
import { createTestDatabase } from '../support/database.ts'
import { keyring } from '../support/keyring.ts'
import { LOGGED_EVENTS, routeUntilDone } from '../support/log.ts'
import { HERALD, heraldJson, runHerald } from '../support/process.ts'
import { answerHerald, NO_TERMINAL } from '../support/terminal.ts'
import { until } from '../support/until.ts'

// Commands that send, cancel, delete, revoke or replace state their effect, and run only after the operator has agreed.

const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase({ uncounted: 'messages are failed by hand' })
const env = { HERALD_DATABASE_URL }
const directory = mkdtempSync(join(tmpdir(), 'herald-confirm-'))
after(() => rmSync(directory, { recursive: true }))

/** A campaign to three recipients. `made`: it runs, and its messages are queued. */
async function newCampaign({ made }: { made: boolean }) {
  const sender = await createSender(pool)
  await fillGroup(pool, sender.accountId, 1, phones(0, 3))
  await pool.query('update groups set members = 3 where account_id = $1', [sender.accountId])
  const campaignId = await acceptedCampaign(pool, sender)
  if (made) {
    await until('its messages are made', async () => {
      await makeAll(pool)
      return (await findCampaign(pool, campaignId)).recipients === 3
    })
  }
  return { ...sender, campaignId }
}

/** A campaign whose messages have all failed, by writing that to the database. */
async function failedCampaign(): Promise<string> {
  const { campaignId } = await newCampaign({ made: true })
  await pool.query(
    `update messages set status = 'FAILED', failed_at = accepted_at, failure_reason = 'REJECTED', failure_description = 'No.' where campaign_id = $1`,
    [campaignId],
  )
  await pool.query('delete from queue where campaign_id = $1', [campaignId])
  await pool.query(`update campaigns set status = 'COMPLETED', completed_at = now() where id = $1`, [campaignId])
  return campaignId
}

/** An endpoint for which two events wait, the first of them having failed once. */
async function newEndpoint() {
  const { accountId } = await createSender(pool)
  const endpoint = await addEndpoint(pool, { accountId, url: `https://hooks.example.com/${accountId}` }, keyring)
  for (let count = 0; count < 2; count += 1) await recordEvent(pool, { accountId, kind: 'message.sent', data: {} })
  await routeUntilDone(pool)
  await pool.query(
    `update webhook_deliveries set attempts = 1, due_at = now() + interval '1 hour'
     where endpoint_id = $1 and position = (select min(position) from webhook_deliveries where endpoint_id = $1)`,
    [endpoint.endpointId],
  )
  return endpoint
}

function peopleFile(): string {
  const path = join(directory, 'people.csv')
  writeFileSync(path, 'phone\n+48700000000\n')
  return path
}

type Case = { command: string; prepare: () => Promise<{ args: string[]; effect: string }> }

const CASES: Case[] = [
  {
    command: 'campaign cancel, of one that runs',
    prepare: async () => {
      const { campaignId } = await newCampaign({ made: true })
      const effect = `cancel the campaign ${campaignId} (Spring sale) for good: about 3 waiting messages are withdrawn`
      return { args: ['campaign', 'cancel', campaignId], effect }
    },
  },
  {
    command: 'campaign cancel, of one that is scheduled',
    prepare: async () => {
      const { campaignId } = await newCampaign({ made: false })
      const notCreated = 'about 0 waiting messages are withdrawn and up to 3 more messages are never created'
      return { args: ['campaign', 'cancel', campaignId], effect: `cancel the campaign ${campaignId} (Spring sale) for good: ${notCreated}` }
    },
  },
  {
    command: 'campaign retry',
    prepare: async () => {
      const campaignId = await failedCampaign()
      const effect = `send 3 messages, to the recipients whose message of the campaign ${campaignId} (Spring sale) failed: 3 REJECTED`
      return { args: ['campaign', 'retry', campaignId], effect }
    },
  },
  ...['rotate', 'revoke', 'update'].map((verb) => ({
    command: `key ${verb}`,
    prepare: async () => {
      const { integrationKey, accountId } = await createSender(pool)
      const { rows } = await pool.query('select created_at from integration_keys where integration_key = $1', [integrationKey])
      const key = `${integrationKey} of account ${accountId} (Test), created at ${rows[0].created_at.toISOString()}`
      const effects: Record<string, string> = {
        rotate: `replace the secret of 1 key, ${key}; the old secret stops working at once`,
        revoke: `revoke 1 key for good, ${key}; the account keeps 0 other live keys`,
        update: `restrict 1 key, ${key}, to scopes: read; addresses: any; other requests with it are refused at once`,
      }
      const options = verb === 'update' ? ['--scope', 'read', '--address', 'any'] : []
      return { args: ['key', verb, integrationKey, ...options], effect: effects[verb] as string }
    },
  })),
  {
    command: 'webhook rotate',
    prepare: async () => {
      const { endpointId, accountId, url } = await newEndpoint()
      const effect = `replace the secret of 1 endpoint, ${endpointId} of account ${accountId}, at ${url}; for 24 hours, events are signed with both secrets`
      return { args: ['webhook', 'rotate', `${endpointId}`], effect }
    },
  },
  {
    command: 'webhook replay --since',
    prepare: async () => {
      const { endpointId, accountId, url } = await newEndpoint()
      const effect = `post about 1 event again to the endpoint ${endpointId} of account ${accountId}, at ${url}`
      return { args: ['webhook', 'replay', `${endpointId}`, '--since', '2026-01-01T00:00:00Z'], effect }
    },
  },
  {
    command: 'webhook remove',
    prepare: async () => {
      const { endpointId, accountId, url } = await newEndpoint()
      const effect = `remove 1 endpoint for good, ${endpointId} of account ${accountId}, at ${url}, with 2 pending and 0 failed events`
      return { args: ['webhook', 'remove', `${endpointId}`], effect }
    },
  },
  {
    command: 'auto-reply remove',
    prepare: async () => {
      const { accountId, agentId } = await createSender(pool)
      const template = { name: 'Hours', basic: false, status: 'APPROVED', message: { type: 'MESSAGE', content: '8 to 16' } } as const
      const { id: templateId } = await createTemplate(pool, accountId, template)
      const { autoReplyId } = await addAutoReply(pool, { accountId, agentId, keyword: 'hours', templateId })
      const effect = `remove 1 automatic reply, ${autoReplyId}, which replies to "hours" with template ${templateId} for the agent ${agentId} of account ${accountId}`
      return { args: ['auto-reply', 'remove', `${autoReplyId}`], effect }
    },
  },
  {
    command: 'opt-out remove',
    prepare: async () => {
      const { accountId, agentId } = await createSender(pool)
      const {
        after: [optOut],
      } = await changeOptOut(pool, { accountId, agentId, phone: '+48500100200' }, true)
      const since = `who opted out at ${optOut?.changedAt.toISOString()} (by operator)`
      const effect = `let the agent ${agentId} of account ${accountId} send campaigns again to 1 recipient, +48500100200, ${since}`
      return { args: ['opt-out', 'remove', `${accountId}`, '+48500100200', '--agent', agentId], effect }
    },
  },
  {
    command: 'account modules, of fewer than before',
    prepare: async () => {
      const { accountId } = await createSender(pool)
      const effect = `remove sms from account ${accountId} (Test): requests with its 1 live key get 403 if they need sms`
      return { args: ['account', 'modules', `${accountId}`, 'rcs'], effect }
    },
  },
  {
    command: 'account suspend',
    prepare: async () => {
      const { accountId } = await newCampaign({ made: true })
      const waiting = '3 queued messages and 0 SMS wait and may expire'
      const effect = `suspend account ${accountId} (Test): requests with its 1 live key get 403, ${waiting}, and 1 running campaign stops until it is resumed`
      return { args: ['account', 'suspend', `${accountId}`], effect }
    },
  },
  ...['deactivate', 'unassign'].map((verb) => ({
    command: `agent ${verb}`,
    prepare: async () => {
      const { accountId, agentId } = await newCampaign({ made: true })
      await changeOptOut(pool, { accountId, agentId, phone: '+48500100200' }, true)
      const failing = '3 queued messages fail with AGENT_INACTIVE, and so do further messages of 1 campaign that is not over'
      const kept = verb === 'unassign' ? '; 0 automatic replies are removed and 1 opt-out is kept' : ''
      const where = verb === 'unassign' ? 'from' : 'for'
      const effect = `${verb} the agent ${agentId} ${where} account ${accountId} (Test): ${failing}; their SMS fallbacks are sent${kept}`
      return { args: ['agent', verb, agentId, `${accountId}`], effect }
    },
  })),
  {
    command: 'agent update, of its carrier',
    prepare: async () => {
      const { agentId } = await newCampaign({ made: true })
      await pool.query(`update agents set carrier = 'rbm' where agent_id = $1`, [agentId])
      const moved = '3 queued messages go through simulator; a message that rbm already has may arrive twice'
      const lost = 'receipts and replies of messages that went through rbm are no longer recorded'
      const effect = `move the agent ${agentId} from the carrier rbm to simulator: ${moved}; ${lost}`
      return { args: ['agent', 'update', agentId, '--carrier', 'simulator'], effect }
    },
  },
  {
    command: 'group import, into a group with members',
    prepare: async () => {
      const { accountId } = await newCampaign({ made: false })
      const effect = `import into group 1 of account ${accountId}, which has 3 members now: members in the file are replaced, all others stay`
      return { args: ['group', 'import', `${accountId}`, '1', peopleFile()], effect }
    },
  },
  {
    command: 'segment remove',
    prepare: async () => {
      const { accountId } = await newCampaign({ made: false })
      return {
        args: ['segment', 'remove', `${accountId}`, '1'],
        effect: `remove group 1 of account ${accountId} with its 3 members for good`,
      }
    },
  },
  {
    command: 'segment remove, of one member',
    prepare: async () => {
      const { accountId } = await newCampaign({ made: false })
      const args = ['segment', 'remove', `${accountId}`, '1', '48700000000']
      return { args, effect: `remove +48700000000 from group 1 of account ${accountId}` }
    },
  },
]

const CHANGED = ['accounts', 'integration_keys', 'campaigns', 'messages', 'webhook_endpoints', 'webhook_secrets', 'webhook_deliveries']
const ALSO_CHANGED = ['agents', 'agent_assignments', 'auto_replies', 'opt_outs', 'groups', 'group_members', 'log_pages']

/** Every row that one of the commands could write. */
async function everything(): Promise<unknown> {
  const tables = [...CHANGED, ...ALSO_CHANGED].map((name) => `(select json_agg(t order by t::text) from ${name} t) as ${name}`)
  return (await pool.query(`select ${tables.join(', ')}`)).rows
}

describe('without a terminal', () => {
  for (const { command, prepare } of CASES) {
    test(`${command} changes nothing without --yes`, async () => {
      const { args, effect } = await prepare()
      const before = await everything()
      const refused = await runHerald(args, env)
      const error = `This would ${effect}. Nothing has changed; repeat the command with --yes to do it.\n`
      assert.deepEqual(refused, { code: 1, stdout: '', stderr: error })
      assert.deepEqual(await everything(), before)
      const done = await runHerald([...args, '--yes', '--json'], env)
      assert.deepEqual([done.code, done.stderr], [0, `This will ${effect}.\n`])
      assert.equal(typeof JSON.parse(done.stdout), 'object', 'the output is JSON alone')
      assert.notDeepEqual(await everything(), before)
    })
  }

  test('webhook replay counts the events of each selection', async () => {
    const { endpointId } = await newEndpoint()
    const { rows } = await pool.query<{ id: string }>(
      `select event_id as id from ${LOGGED_EVENTS} as e join webhook_deliveries d using (account_id, position) where d.endpoint_id = $1 and d.attempts = 1`,
      [endpointId],
    )
    for (const selection of [
      ['--event', rows[0]?.id as string],
      ['--failed-since', '2026-01-01T00:00:00Z'],
    ]) {
      const { stderr } = await runHerald(['webhook', 'replay', `${endpointId}`, ...selection], env)
      assert.match(stderr, new RegExp(`^This would post about 1 event again to the endpoint ${endpointId} `))
    }
  })

  test('commands that affect nothing need no --yes', async () => {
    const { accountId, agentId, integrationKey } = await createSender(pool)
    const account = `${accountId}`
    await heraldJson(['account', 'modules', account, 'sms,rcs'], env)
    await heraldJson(['group', 'import', account, '1', peopleFile()], env)
    await heraldJson(['account', 'suspend', account, '--yes'], env)
    await heraldJson(['account', 'suspend', account], env)
    await heraldJson(['agent', 'deactivate', agentId, account, '--yes'], env)
    await heraldJson(['agent', 'deactivate', agentId, account], env)
    await heraldJson(['agent', 'update', agentId, '--carrier', 'simulator', '--name', 'other'], env)
    await heraldJson(['key', 'revoke', integrationKey, '--yes'], env)
    await heraldJson(['key', 'revoke', integrationKey], env)
    const { campaignId } = await newCampaign({ made: false })
    await heraldJson(['campaign', 'cancel', campaignId, '--yes'], env)
    await heraldJson(['campaign', 'cancel', campaignId], env)
  })

  test('group import from standard input needs --yes if the group has members', async () => {
    const { accountId } = await newCampaign({ made: false })
    const args = [HERALD, 'group', 'import', `${accountId}`, '1', '-']
    const options = {
      env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
      input: 'phone\n+48700000000\n',
      encoding: 'utf8',
    } as const
    const refused = spawnSync(process.execPath, args, options)
    assert.equal(refused.status, 1)
    assert.match(refused.stderr, /^This would import into group 1 .* 3 members now.* with --yes to do it\.\n$/)
    assert.equal(spawnSync(process.execPath, [...args, '--yes'], options).status, 0)
  })
})

describe('on a terminal', { skip: NO_TERMINAL }, () => {
  const asked = async (answer: string | undefined) => {
    const { integrationKey } = await createSender(pool)
    const { code, shown } = await answerHerald(['key', 'revoke', integrationKey, '--json'], env, answer)
    const { rows } = await pool.query('select from integration_keys where integration_key = $1 and revoked_at is not null', [
      integrationKey,
    ])
    return { code, shown, isRevoked: rows.length === 1 }
  }

  for (const answer of ['y', 'YES']) {
    test(`a command runs after ${answer}`, async () => {
      const { code, shown, isRevoked } = await asked(answer)
      assert.deepEqual([code, isRevoked], [0, true])
      assert.match(shown, /^This will revoke 1 key for good, hk_.*\.\nContinue\? \[y\/N\] .*\n\{\n/)
    })
  }

  for (const answer of ['', 'n', 'yess', '\u0004']) {
    test(`a command changes nothing after ${JSON.stringify(answer)}`, async () => {
      const { code, shown, isRevoked } = await asked(answer)
      assert.deepEqual([code, isRevoked], [1, false])
      assert.match(shown, /Nothing has changed\.\n$/)
    })
  }

  test('a command changes nothing after Ctrl-C', async () => {
    const { code, isRevoked } = await asked(undefined)
    assert.deepEqual([code, isRevoked], [130, false])
  })
})

describe('the question', () => {
  /** The outcome of a question, and what was written. */
  async function dialogue(answer: string, terminals: { input: boolean; output: boolean }, yes?: true) {
    const [input, output] = [new PassThrough(), new PassThrough()]
    input.end(answer)
    const streams = { input: Object.assign(input, { isTTY: terminals.input }), output: Object.assign(output, { isTTY: terminals.output }) }
    const outcome = await confirm({ ...(yes && { yes }) }, 'do it \u001b[2J', streams).then(
      () => 'agreed',
      (error: Error) => error.message,
    )
    return { outcome, written: await text(output.end()) }
  }
  const BOTH = { input: true, output: true }
  const SHOWN = 'This will do it \\u001b[2J.\n'

  test('is asked if both streams are terminals, with escaped text', async () => {
    assert.deepEqual(await dialogue('y\n', BOTH), { outcome: 'agreed', written: `${SHOWN}Continue? [y/N] ` })
    assert.deepEqual(await dialogue('n\n', BOTH), { outcome: 'Nothing has changed.', written: `${SHOWN}Continue? [y/N] ` })
    assert.deepEqual(await dialogue('', BOTH), { outcome: 'Nothing has changed.', written: `${SHOWN}Continue? [y/N] ` })
  })

  test('is not asked with --yes, and the effect is shown', async () => {
    assert.deepEqual(await dialogue('n\n', BOTH, true), { outcome: 'agreed', written: SHOWN })
  })

  for (const terminals of [
    { input: false, output: true },
    { input: true, output: false },
  ]) {
    test(`is not asked if only the ${terminals.input ? 'input' : 'error stream'} is a terminal`, async () => {
      const { outcome, written } = await dialogue('y\n', terminals)
      assert.match(outcome, /^This would do it .* with --yes to do it\.$/)
      assert.equal(written, '')
    })
  }
})

test('the effect of webhook remove counts one failed event as one', async () => {
  const { endpointId } = await newEndpoint()
  await pool.query('update webhook_deliveries set due_at = null where endpoint_id = $1 and attempts = 1', [endpointId])
  const { stderr } = await runHerald(['webhook', 'remove', `${endpointId}`], env)
  assert.match(stderr, /with 1 pending and 1 failed event\. Nothing has changed/)
})

test('person allow of a number that was never erased is refused without a question', async () => {
  const { code, stderr } = await runHerald(['person', 'allow', '+48700000009'], env)
  assert.deepEqual([code, stderr], [3, '+48700000009 was not erased.\n'])
})
