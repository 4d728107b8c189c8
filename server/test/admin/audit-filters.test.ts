import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type AuditFilters, listAudit } from '../../src/audit/list.ts'
import type { Executor } from '../../src/db/pool.ts'
import { newPerson, owner, pool, sessionOf } from './shared.ts'

const { ask } = await sessionOf((await newPerson('operator')).personId)

await owner.query(
  `insert into audit_log (actor_kind, actor_name, account_id, action, subject)
   select 'person', 'anna' || i % 3, i % 5, 'change' || i % 7, 'subject-' || i from generate_series(1, 20000) as i`,
)
await owner.query('analyze audit_log')
// Other tests of this folder read the whole log.
after(() => owner.query(`delete from audit_log where actor_name like 'anna_'`))

/** The plan of the list with these filters. */
async function planOf(filters: AuditFilters): Promise<string> {
  const plans: string[] = []
  const query = async (text: string, values: unknown[]) => {
    const { rows } = await pool.query(`explain (format json) ${text}`, values)
    plans.push(JSON.stringify(rows))
    return { rows: [] }
  }
  await listAudit({ query } as unknown as Executor, filters)
  assert.equal(plans.length, 1)
  return plans[0] as string
}

for (const [name, index] of [
  ['subject', 'audit_log_subject_id_idx'],
  ['actor', 'audit_log_actor_name_id_idx'],
  ['action', 'audit_log_action_id_idx'],
] as const)
  test(`a ${name} that no entry has does not read the whole log`, async () => {
    for (const account of [{}, { accountIds: [3] }]) {
      const plan = await planOf({ [name]: 'nobody', ...account })
      assert.ok(plan.includes(`"${index}"`), plan)
      assert.ok(!plan.includes('Seq Scan'), plan)
    }
  })

test('filters with a NUL character, which no text in the database can have, are rejected', async () => {
  for (const path of ['/audit?subject=%00', '/audit?actor=a%00', '/audit?action=%00', '/audit/export?subject=%00', '/people?search=%00']) {
    const { status } = await ask('GET', path)
    assert.equal(status, 400, path)
  }
})

test('people are found by a part of the name or the address, in any case', async () => {
  const { email, personId } = await newPerson('operator')
  await pool.query('update people set name = $2 where id = $1', [personId, 'Łucja 100%_Żak'])
  for (const search of ['łucja', 'ŁUCJA 100%_', 'żak', email.toUpperCase()]) {
    const { body } = await ask('GET', `/people?search=${encodeURIComponent(search)}`)
    assert.deepEqual(
      body.items.map((person: { personId: number }) => person.personId),
      [personId],
      search,
    )
  }
  const { body } = await ask('GET', `/people?search=${encodeURIComponent('nobody%')}`)
  assert.deepEqual(body.items, [])
})
