import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import pg from 'pg'
import { changeAgent } from '../../src/agents/agents.ts'
import { failInactive } from '../../src/delivery/fail.ts'
import { visitLink } from '../../src/links/links.ts'
import { COUNTED } from '../../src/reports/counters.ts'
import { createTemplate } from '../../src/templates/templates.ts'
import { passTime } from '../delivery/sms/support.ts'
import { createSender } from '../delivery/support.ts'
import { type Counted, readCounted } from '../support/counted.ts'
import { createTestDatabase } from '../support/database.ts'
import { createSteps, type Made, type Sort } from '../support/steps.ts'

// A change counts in the UTC hour of its stored time, which is rounded to milliseconds.

// The database has the time zone of India, whose hours begin at half past in UTC, and a clock that stands still: `clock.now` comes before the
// real function on the search path.
const { url, hotPool: pool } = await createTestDatabase({
  unmetered: 'messages are moved to another hour by hand, which may be another day',
})
const admin = new pg.Client(url)
await admin.connect()
await admin.query(`
  create schema clock;
  create table clock.hands (at timestamptz not null);
  grant usage on schema clock to herald_service;
  grant select, update on clock.hands to herald_service;
  insert into clock.hands values ('2000-01-01T00:00:00Z');
  create function clock.now() returns timestamptz language sql stable as 'select at from clock.hands';
  alter table messages alter column accepted_at set default clock.now();
  do $$ begin execute format('alter database %I set timezone = %L', current_database(), 'Asia/Kolkata'); end $$;
  do $$ begin execute format('alter database %I set search_path = clock, public, pg_catalog', current_database()); end $$`)
await admin.end()

const { make, makeAllOf, handOver, refuse, report, expire, endSms, sendSms, reportSms, act, tap, link, withdraw } = await createSteps(pool)

const HOUR_MS = 3_600_000
// The next full hour: there are partitions for the months before and after it, even if it is the first of a month.
const EDGE = Math.ceil(Date.now() / HOUR_MS) * HOUR_MS
const AHEAD = new Date(EDGE + HOUR_MS)
const hourAt = (hours: number) => new Date(EDGE + hours * HOUR_MS).toISOString()

/** Stops the clock this long before the full hour. */
async function stopClock(microseconds: number): Promise<void> {
  await pool.query(`update clock.hands set at = $1::timestamptz - $2 * interval '1 microsecond'`, [new Date(EDGE), microseconds])
}

/** Messages that together reach every counter at the time of the clock, except one that expired two hours before. */
async function reachAll(sort: Sort): Promise<Counted[]> {
  const [read, failed, sms, skipped, expired] = (await makeAllOf(sort, { count: 5, sms: {} })) as [Made, Made, Made, Made, Made]
  const { sender } = read
  await expire(expired, '2 hours')
  await handOver(read)
  // The clock of the network is ahead, so the time of the database counts.
  await report(read, 'read', AHEAD)
  for (const made of [failed, sms, skipped]) await refuse(made)
  await passTime(pool)
  await endSms(failed, { is: 'failed', reason: 'REJECTED', detail: '' })
  await endSms(skipped, { is: 'skipped', reason: 'QUARANTINE' })
  await reportSms(sms, await sendSms(sms))
  await visitLink(pool, await link(read), false)
  await tap(read, 'yes', AHEAD)
  await act(read, { kind: 'wrote', text: 'STOP' }, AHEAD)
  return await readCounted(pool, sender)
}

const ALL = { accepted: 5, sent: 1, delivered: 1, read: 1, failed: 3, unsent: 3, clicked: 1, replied: 1, opted_out: 1 }
const ALL_SMS = { sms_sent: 1, sms_delivered: 1, sms_failed: 1, sms_skipped: 2 }

for (const [microseconds, base, where] of [
  [300, 0, 'next'],
  [600, -1, 'ending'],
] as const) {
  describe(`${microseconds} microseconds before the full hour, counts in the ${where} hour`, () => {
    test('nothing of a test message', async () => {
      await stopClock(microseconds)
      assert.deepEqual(await reachAll('test'), [])
    })

    for (const sort of ['single', 'campaign'] satisfies Sort[]) {
      test(`every counter of a ${sort} message`, async () => {
        await stopClock(microseconds)
        const counted = await reachAll(sort)
        const claimed = sort === 'campaign' ? { claimed: 4 } : {}
        const expected = COUNTED.filter((counter) => sort === 'campaign' || counter !== 'claimed')
        assert.deepEqual(new Set(counted.flatMap(({ counts }) => Object.keys(counts))), new Set(expected), 'nothing is left out')
        assert.deepEqual(
          counted.map(({ hour, counts }) => ({ hour, counts })),
          [
            { hour: hourAt(base - 2), counts: { expired: 1, unsent: 1, ...(sort === 'campaign' && { claimed: 1 }) } },
            { hour: hourAt(base), counts: { ...ALL, ...ALL_SMS, ...claimed } },
          ],
        )
      })
    }

    test('a template that a tap requests', async () => {
      await stopClock(microseconds)
      const sender = await createSender(pool)
      const message = { type: 'MESSAGE', content: 'More' } as const
      const { id } = await createTemplate(pool, sender.accountId, { name: 'T', basic: false, status: 'APPROVED', message })
      const made = await make('single', { sender, buttons: [{ id: 'more', type: 'trigger_template', text: 'More', templateId: id }] })
      await handOver(made)
      await tap(made, 'more', AHEAD)
      const counts = { accepted: 2, sent: 1, replied: 1 }
      assert.deepEqual(await readCounted(pool, sender), [{ campaignId: made.campaignId, hour: hourAt(base), counts }])
    })

    test('messages that fail with their agent or their campaign', async () => {
      await stopClock(microseconds)
      const inactive = await make('single')
      await changeAgent(pool, inactive.sender.accountId, inactive.sender.agentId, { active: false })
      await failInactive(pool)
      const withdrawn = await make('campaign', { sms: {} })
      await withdraw(withdrawn)
      const hour = hourAt(base)
      assert.deepEqual(
        [...(await readCounted(pool, inactive.sender)), ...(await readCounted(pool, withdrawn.sender))],
        [
          { campaignId: inactive.campaignId, hour, counts: { accepted: 1, failed: 1, unsent: 1 } },
          { campaignId: withdrawn.campaignId, hour, counts: { accepted: 1, failed: 1, unsent: 1, claimed: 1, sms_skipped: 1 } },
        ],
      )
    })
  })
}

test('counts a receipt in the hour that it names', async () => {
  await stopClock(0)
  const made = await make('single')
  await pool.query(`update messages set accepted_at = accepted_at - interval '5 hours' where id = $1`, [made.messageId])
  await pool.query(`update report_deltas set hour = hour - interval '5 hours' where account_id = $1`, [made.sender.accountId])
  await report(made, 'delivered', new Date(EDGE - 3 * HOUR_MS))
  await report(made, 'read', new Date(EDGE - 2 * HOUR_MS - 1))
  assert.deepEqual(
    (await readCounted(pool, made.sender)).map(({ hour, counts }) => ({ hour, counts })),
    [
      { hour: hourAt(-5), counts: { accepted: 1 } },
      { hour: hourAt(-3), counts: { sent: 1, delivered: 1, read: 1 } },
    ],
  )
})
