import assert from 'node:assert/strict'
import type { Executor } from '../../src/db/pool.ts'
import { FALLBACK_STATUSES } from '../../src/messages/states.ts'

// Rules for the rows of every database. As constraints, PostgreSQL would parse them for every statement that writes to a table, so the tests
// check them instead, in each test database when it is dropped.

const ID = { messages: 'm.id::text', queue: 'q.message_id::text', keys: 'k.key', pages: 'p.page_id::text', heads: 'h.account_id::text' }

/** Each query selects the ids of rows that break the rule. */
export const RULES = {
  'a recipient is + and 5 to 15 digits, or erased': `
    select ${ID.messages} from messages m where m.recipient !~ '^(\\+[0-9]{5,15}|erased-[0-9a-f]{32})$'`,
  'a status is one that is stored': `
    select ${ID.messages} from messages m where m.status not in ('ACCEPTED', 'SENT', 'DELIVERED', 'READ', 'FAILED', 'EXPIRED')`,
  'a traffic is one that carriers know': `
    select ${ID.messages} from messages m where m.traffic not in ('TRANSACTION', 'PROMOTION', 'SERVICEREQUEST')`,
  'a reference has at most 255 characters': `select ${ID.messages} from messages m where char_length(m.client_reference_id) > 255`,
  'a message has its own content or that of a template': `select ${ID.messages} from messages m where num_nonnulls(m.content_id, m.content) <> 1`,
  'a message that was sent has the time': `
    select ${ID.messages} from messages m where m.status in ('SENT', 'DELIVERED', 'READ') and m.sent_at is null`,
  'a message that was delivered, and no other, has the time': `
    select ${ID.messages} from messages m where (m.delivered_at is not null) <> (m.status in ('DELIVERED', 'READ'))`,
  'a message that was read, and no other, has the time': `
    select ${ID.messages} from messages m where (m.read_at is not null) <> (m.status = 'READ')`,
  'a message that failed, and no other, says when and why': `
    select ${ID.messages} from messages m
    where num_nonnulls(m.failed_at, m.failure_reason, m.failure_description) <> case m.status when 'FAILED' then 3 else 0 end`,
  'the times of a message are in order': `
    select ${ID.messages} from messages m where m.sent_at < m.accepted_at or m.delivered_at < m.sent_at or m.read_at < m.delivered_at`,
  'a message is not sent before the time that its caller asked for': `
    select ${ID.messages} from messages m where m.sent_at < m.scheduled_at`,
  'the status of a fallback is one that is stored': `
    select f.message_id::text from sms_fallbacks f where f.status <> all ('{${FALLBACK_STATUSES.join()}}')`,
  'an entry is to send or to revoke': `select ${ID.queue} from queue q where q.task not in ('send', 'revoke')`,
  'an entry that is leased has a token': `select ${ID.queue} from queue q where q.lease is null and q.leased_until > now()`,
  'only what is ACCEPTED waits to be sent': `
    select ${ID.queue} from queue q join messages m on m.id = q.message_id where q.task = 'send' and m.status <> 'ACCEPTED'`,
  'a key is of an endpoint that has keys': `select ${ID.keys} from idempotency_keys k where k.endpoint not in ('messages', 'campaigns')`,
  'a key is 1 to 255 printable characters of ASCII': `
    select ${ID.keys} from idempotency_keys k where length(k.key) not between 1 and 255 or k.key !~ '^[ -~]*$'`,
  'a key has the hash of its request': `select ${ID.keys} from idempotency_keys k where octet_length(k.request_hash) <> 32`,
  'a page says how many events it has, 100 at most': `
    select ${ID.pages} from log_pages p where json_array_length(p.events) <> p.event_count or p.event_count not between 1 and 100`,
  'pages of an account do not overlap': `
    select ${ID.pages} from (
      select p.page_id, p.last_position - p.event_count as before, lag(p.last_position) over (partition by p.account_id order by p.last_position) as last
      from log_pages p where p.last_position is not null
    ) as p where p.before < p.last`,
  'the head of an account is its last position': `
    select ${ID.heads} from log_heads h where h.last_position < (select max(last_position) from log_pages p where p.account_id = h.account_id)`,
} satisfies Record<string, string>

const AUDIT = Object.entries(RULES)
  .map(([rule, broken]) => `(select '${rule.replaceAll("'", "''")}' as rule, broken.id from (${broken}) as broken (id) limit 3)`)
  .join(' union all ')

/** A test that moves messages by hand may leave their queue entries. */
const OF_SEVERAL_TABLES: (keyof typeof RULES)[] = ['only what is ACCEPTED waits to be sent']

/** Fails if a row breaks a rule. One statement, so that it sees one moment: a service may go on meanwhile. */
export async function auditDatabase(db: Executor, { isMovedByHand = false } = {}): Promise<void> {
  const { rows: broken } = await db.query<{ rule: keyof typeof RULES; id: string }>(AUDIT)
  const rows = broken.filter(({ rule }) => !(isMovedByHand && OF_SEVERAL_TABLES.includes(rule)))
  assert.ok(rows.length === 0, `rules are broken:\n${rows.map(({ rule, id }) => `${rule}: not so for ${id}`).join('\n')}`)
}
