import { join } from 'node:path'
import { createAccount, MODULES } from '../accounts/accounts.ts'
import { type Credentials, createKey } from '../accounts/keys.ts'
import { countUsage } from '../accounts/usage.ts'
import { assignAgent, BILLING_TYPES, createAgent } from '../agents/agents.ts'
import { type Executor, type Pool, transaction } from '../db/pool.ts'
import { writePrivateFile } from '../files.ts'
import { memberBytes } from '../groups/member-bytes.ts'
import { insertTemplate, type TemplateInput } from '../templates/templates.ts'

/**
 * Creates a demo account if the database is empty. Returns whether it did. The credentials are on the disk before the account is committed: a
 * crash in between leaves a useless file, which the next start overwrites, but never an account whose credentials are lost.
 */
export async function makeDemoAccount(pool: Pool, dataDir: string): Promise<boolean> {
  return await transaction(pool, async (tx) => {
    const { rows } = await tx.query<{ empty: boolean }>('select not exists (select from accounts) as empty')
    if (!rows[0]?.empty) return false
    const { accountId } = await createAccount(tx, 'Demo', MODULES)
    for (const billingType of BILLING_TYPES) {
      const { agentId } = await createAgent(tx, {
        agentId: `demo-${billingType}`,
        name: `demo_${billingType}`,
        billingType,
        carrier: 'simulator',
      })
      await assignAgent(tx, agentId, accountId)
    }
    // The database has no templates yet, so the random id is free.
    await insertTemplate(tx, accountId, DEMO_TEMPLATE)
    for (const [number, { name, phones }] of DEMO_GROUPS.entries()) await makeGroup(tx, accountId, number + 1, name, phones)
    writeCredentials(dataDir, accountId, await createKey(tx, accountId))
    return true
  })
}

const DEMO_TEMPLATE: TemplateInput = {
  name: 'Order on its way',
  description: 'A card with a button for each of the usual next steps.',
  basic: false,
  status: 'APPROVED',
  message: {
    type: 'CARD',
    content: 'It should be with you tomorrow before noon.',
    data: { title: 'Your order is on its way', imageUrl: 'https://example.com/parcel.jpg' },
    buttons: [
      { id: 'track', type: 'url', text: 'Track it', url: 'https://example.com/track' },
      { id: 'change', type: 'quick_reply', text: 'Another day, please', payload: 'change-day' },
      { id: 'call', type: 'call', text: 'Call us', phoneNumber: '+48500100200' },
    ],
  },
}

// The last two digits decide how a phone of the simulated network behaves: simulator/README.md lists them.
const ENDINGS = ['00', '01', '02', '03', '04', '05', '06', '07', '08', '09']
const DEMO_GROUPS = [
  { name: 'One of each kind of phone', phones: ENDINGS.map((ending) => `+485001001${ending}`) },
  { name: 'A hundred and twenty', phones: Array.from({ length: 120 }, (_, index) => `+4850020${String(index).padStart(4, '0')}`) },
]

async function makeGroup(db: Executor, accountId: number, number: number, name: string, phones: string[]): Promise<void> {
  await db.query('insert into groups (account_id, number, name) values ($1, $2, $3)', [accountId, number, name])
  await db.query(ADD_MEMBERS, [accountId, number, phones])
}

const ADD_MEMBERS = `
  with added as (
    insert into group_members (account_id, group_number, phone) select $1, $2, phone from unnest($3::text[]) as phone returning *
  ), more as (
    select count(*) as members, sum(${memberBytes('added')}) as bytes from added
  ), counted as (
    update groups set members = more.members, bytes = more.bytes from more where account_id = $1 and number = $2
  )
  ${countUsage({ account: '$1::int', from: 'more', contentBytes: 'sum(bytes)' })}`

/** Writes JSON for programs, and a header line for `curl -H @file`, which keeps the secret out of the shell's history and the process list. */
function writeCredentials(dataDir: string, accountId: number, credentials: Credentials): void {
  const authorization = `Bearer ${credentials.integrationKey}:${credentials.secret}`
  writePrivateFile(join(dataDir, 'demo.json'), `${JSON.stringify({ accountId, ...credentials, authorization }, null, 2)}\n`)
  writePrivateFile(join(dataDir, 'demo.header'), `Authorization: ${authorization}\n`)
}
