import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Executor, transaction } from '../../src/db/pool.ts'
import { createSender, queueMessage } from '../delivery/support.ts'
import { auditDatabase, type RULES } from '../support/audit.ts'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { writeEvents } from '../support/log.ts'

const { pool } = await createTestDatabase({ unmetered: 'a message is written by hand' })
const sender = await createSender(pool)
const messageId = await queueMessage(pool, sender)
await writeEvents(pool, [{ accountId: sender.accountId, kind: 'webhook.test' }])
await pool.query('update log_pages set last_position = id')
await pool.query('insert into log_heads select account_id, max(last_position) from log_pages group by 1')

const KEY = `insert into idempotency_keys (account_id, endpoint, key, request_hash, resource_id) values`
const SENT = `status = 'SENT', sent_at = accepted_at`

/** A statement that breaks each rule. */
const BREAKING: Record<keyof typeof RULES, string> = {
  'a recipient is + and 5 to 15 digits, or erased': `update messages set recipient = '48500'`,
  'a status is one that is stored': `update messages set status = 'SENDING'`,
  'a traffic is one that carriers know': `update messages set traffic = 'SPAM'`,
  'a reference has at most 255 characters': `update messages set client_reference_id = repeat('x', 256)`,
  'a message has its own content or that of a template': 'update messages set content_id = 1',
  'a message that was sent has the time': `update messages set status = 'SENT'`,
  'a message that was delivered, and no other, has the time': 'update messages set delivered_at = now()',
  'a message that was read, and no other, has the time': 'update messages set read_at = now()',
  'a message that failed, and no other, says when and why': `update messages set status = 'FAILED', failed_at = now()`,
  'the times of a message are in order': `update messages set status = 'SENT', sent_at = accepted_at - interval '1 second'`,
  'a message is not sent before the time that its caller asked for': `
    update messages set ${SENT}, scheduled_at = accepted_at + interval '1 second'`,
  'the status of a fallback is one that is stored': `
    insert into sms_fallbacks (message_id, account_id, status, plan, segments, delay_seconds, after_expiry)
    select id, account_id, 'WAITING', '{}', 1, 0, false from messages; alter table sms_fallbacks drop constraint sms_fallbacks_status_check;
    alter table sms_fallbacks drop constraint sms_fallbacks_reason; alter table sms_fallbacks drop constraint sms_fallbacks_due;
    update sms_fallbacks set status = 'LOST'`,
  'an entry is to send or to revoke': `update queue set task = 'forget'`,
  'an entry that is leased has a token': `update queue set leased_until = now() + interval '1 minute'`,
  'only what is ACCEPTED waits to be sent': `update messages set ${SENT}`,
  'a key is of an endpoint that has keys': `${KEY} (1, 'templates', 'key', sha256('x'), gen_random_uuid())`,
  'a key is 1 to 255 printable characters of ASCII': `${KEY} (1, 'messages', 'kéy', sha256('x'), gen_random_uuid())`,
  'a key has the hash of its request': `${KEY} (1, 'messages', 'key', 'x', gen_random_uuid())`,
  'a page says how many events it has, 100 at most': 'update log_pages set event_count = 2',
  'pages of an account do not overlap': `
    insert into log_pages (account_id, event_count, last_position, events) select account_id, 2, 2, '[1, 2]' from log_pages`,
  'the head of an account is its last position': 'update log_heads set last_position = 0',
}

const rolledBack = new Error('rolled back')

async function undone(work: (tx: Executor) => Promise<void>): Promise<void> {
  await assert.rejects(
    transaction(ownerOf(pool), async (tx) => {
      await work(tx)
      throw rolledBack
    }),
    rolledBack,
  )
}

describe('the audit of a database', () => {
  test('finds nothing in rows of the service', async () => {
    assert.match(messageId, /-/)
    await auditDatabase(pool)
  })

  for (const [rule, statement] of Object.entries(BREAKING)) {
    test(`finds a row that breaks: ${rule}`, async () => {
      await undone(async (tx) => {
        await tx.query(statement)
        await assert.rejects(auditDatabase(tx), (error: Error) => error.message.includes(`${rule}: not so for`))
      })
    })
  }
})
