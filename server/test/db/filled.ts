import pg from 'pg'
import { createSender, queueMessages } from '../delivery/support.ts'
import type { TestDatabase } from '../support/database.ts'

const MESSAGES = 20_000
const BATCH = 1_000

/** Writes 20,000 messages with a campaign, a log, SMS and receipts. Half of the messages wait in the queue. */
export async function fillDatabase({ url, pool }: TestDatabase, messagesTable: string): Promise<void> {
  const sender = await createSender(pool)
  for (let written = 0; written < MESSAGES; written += BATCH) await queueMessages(pool, sender, { count: BATCH })
  // Without the timeouts of the pool: a busy machine takes seconds for some of these.
  const client = new pg.Client(url)
  await client.connect()
  for (const statement of more(messagesTable)) await client.query(statement)
  await client.end()
}

const numbered = (messagesTable: string) => `(select *, row_number() over (order by id) as n from ${messagesTable}) as m`

function more(messagesTable: string): string[] {
  const of = numbered(messagesTable)
  return [
    `insert into contents (account_id, basic, message) select account_id, false, '{}' from ${of}`,
    `insert into campaigns (id, account_id, agent_id, name, group_numbers, group_generations, basic, content_id, status, scheduled_at, started_at)
     select uuid_v7(), account_id, agent_id, 'n', '{1,2}', '{0,0}', false, n, 'RUNNING', now(), now() from ${of} limit 100`,
    `update ${messagesTable} set campaign_id = (select id from campaigns limit 1), status = 'SENT', sent_at = now(), recipient = '+48500' || n
     from (select id as numbered, row_number() over (order by id) as n from ${messagesTable}) as m where id = numbered and n % 2 = 0`,
    `delete from queue where message_id in (select id from ${messagesTable} where status = 'SENT')`,
    `insert into message_events (message_id, account_id, kind, occurred_at, campaign_id, recipient)
     select id, account_id, 'sent', now(), campaign_id, recipient from ${of}`,
    `insert into recipient_actions (account_id, agent_id, recipient, message_id, kind, channel, occurred_at)
     select account_id, agent_id, recipient, id, 'wrote', 'rcs', now() from ${of}`,
    `insert into idempotency_keys (account_id, endpoint, key, request_hash, resource_id)
     select account_id, 'messages', n, decode(repeat('00', 32), 'hex'), id from ${of}`,
    `insert into sms_fallbacks (message_id, account_id, plan, segments, delay_seconds, after_expiry)
     select id, account_id, '{}', 1, 0, false from ${of}`,
    `insert into sms_queue (message_id, copy, account_id, recipient, priority, planned_at, due_at, expires_at, segments, lease)
     select id, 0, account_id, recipient, 0, now(), now(), now(), 1, case when n % 100 = 0 then id end from ${of}`,
    `insert into sms_segments (message_id, copy, segment, carrier, carrier_message_id, recipient)
     select id, 0, 1, 'smsc', n, recipient from ${of}`,
    `insert into sms_receipts (carrier, carrier_message_id, recipient, event_id, reading, state, detail, occurred_at)
     select 'smsc', n, recipient, n, 0, 'delivered', '', now() from ${of}`,
    `insert into sms_contacts (account_id, recipient, sender, agent_id, message_id, is_copy, sent_at)
     select account_id, n, 's', agent_id, id, false, now() from ${of}`,
    `insert into short_links (code, account_id, message_id, copy, agent_id, recipient, url)
     select n, account_id, id, 0, agent_id, recipient, 'https://example.com' from ${of}`,
    `insert into carrier_events (carrier, event_id, kind, phone, occurred_at, event, process_after)
     select 'rbm', n, 'wrote', recipient, now(), '{}', case when n % 2 = 0 then now() end from ${of}`,
    `insert into capabilities (phone, agent_id, carrier, reachable, checked_at)
     select '+48600' || n, agent_id, 'simulator', true, now() from ${of}`,
    `insert into opt_outs (account_id, agent_id, phone, opted_out, source, changed_at)
     select account_id, agent_id, n, true, 'word', now() from ${of}`,
    `insert into groups (account_id, number) select account_id, number from (select account_id from ${of} limit 1) as one, generate_series(1, 10) as number`,
    `insert into group_members (account_id, group_number, phone) select account_id, 1 + n % 10, '+' || 48000000 + n from ${of}`,
    `insert into log_pages (account_id, event_count, last_position, events)
     select account_id, 1, case when n % 2 = 0 then n end, '[["message.sent"]]' from ${of}`,
    `insert into webhook_endpoints (account_id, url) select account_id, 'https://example.com' from ${of} limit 100`,
    `insert into webhook_deliveries (endpoint_id, account_id, position, subject_id, due_at) select 1 + n % 100, account_id, n, id::text, now() from ${of}`,
    `insert into webhook_attempts (endpoint_id, account_id, position, attempt, attempted_at, duration_ms) select 1 + n % 100, account_id, n, 1, now(), 1 from ${of}`,
    `insert into report_deltas (account_id, campaign_id, hour) select account_id, id, now() from ${of}`,
    `insert into report_totals (account_id, campaign_id, hour, accepted, sent, delivered, read, failed, expired, clicked, replied, opted_out, sms_sent,
       sms_delivered, sms_failed, sms_skipped) select account_id, id, now(), 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 from ${of}`,
    `insert into account_usage_deltas (account_id, messages, message_bytes, content_bytes) select account_id, 1, 1, 1 from ${of}`,
    `insert into rate_limit_windows (bucket, quota, window_ms, hit_times, hit_counts, granted, held_turns, held_counts, checked_at)
     select n, 1, 1, '{}', '{}', 1, '{}', '{}', now() from ${of}`,
  ]
}
