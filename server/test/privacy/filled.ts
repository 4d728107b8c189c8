import type { Pool } from '../../src/db/pool.ts'
import type { Sender } from '../delivery/support.ts'
import { createTable, ownerOf } from '../support/database.ts'

// Writes the rows of a person by hand: in every table that can have a number, in three months, with texts that networks could write.

/** Writes `count` messages to the person in each month, and everything that belongs to them. `mark` is in every text of the person. */
export async function fillPerson(pool: Pool, sender: Sender, phone: string, mark: string, count = 3): Promise<void> {
  const { accountId, agentId } = sender
  const { rows } = await pool.query('select coalesce(max(last_position), 0) as base from log_pages')
  const { base } = rows[0]
  await ownerOf(pool).query('drop table if exists filled')
  await createTable(
    pool,
    `filled as
     select (left(uuid_v7_from(date_trunc('month', now()) - m * interval '1 month' + n * interval '1 ms')::text, 19) || right(gen_random_uuid()::text, 17))::uuid as id,
       n, m from generate_series(1, ${count}) as n, generate_series(0, 2) as m`,
  )
  const planOf = (text: string, ...copies: string[]) => `'${JSON.stringify({ sender: 'Shop', content: text, copies })}'::json`
  const own = `'${JSON.stringify({ sender: phone.slice(1), campaign: `for ${mark}`, content: `SMS to ${mark}`, copies: [] })}'::json`
  const toAnother = planOf('To another', '+48500999999', phone)
  const words = `'Not reachable. The network said: "Dear ${mark}" to ${phone} (${phone.slice(1)})'`
  for (const statement of [
    `insert into messages (id, account_id, agent_id, recipient, basic, test, client_reference_id, content, status, accepted_at, expires_at, failed_at,
       failure_reason, failure_description)
     select id, ${accountId}, '${agentId}', '${phone}', false, false, '${mark} ' || n, '{"type":"MESSAGE","content":"Dear ${mark}"}', 'FAILED', now(), now(),
       now(), 'NOT_REACHABLE', ${words} from filled`,
    `insert into message_events (message_id, account_id, kind, occurred_at, detail, recipient)
     select id, ${accountId}, 'attempt-failed', now(), ${words}, '${phone}' from filled`,
    `insert into sms_fallbacks (message_id, account_id, plan, segments, delay_seconds, after_expiry, detail)
     select id, ${accountId}, ${own}, 1, 0, false, ${words} from filled`,
    // An SMS to another recipient, with a copy to the person.
    `insert into sms_fallbacks (message_id, account_id, plan, segments, delay_seconds, after_expiry)
     select uuid_v7(), ${accountId}, ${toAnother}, 1, 0, false from filled where n = 1`,
    `insert into recipient_actions (id, account_id, agent_id, recipient, message_id, kind, channel, button_id, text, payload, url, latitude, longitude, occurred_at)
     select id, ${accountId}, '${agentId}', '${phone}', case when n > 1 then id end, 'wrote', 'rcs', 'yes-${mark}', '${mark}', '${mark}', 'https://example.com/${mark}', 52.512345, 13.4,
       now() from filled`,
    `insert into opt_outs (account_id, agent_id, phone, opted_out, source, changed_at)
     select ${accountId}, agent, '${phone}', true, 'word', now() from unnest(array['${agentId}', '']) as agent`,
    `insert into groups (account_id, number, members) values (${accountId}, 1, 2) on conflict do nothing`,
    `insert into group_members (account_id, group_number, phone, attributes)
     values (${accountId}, 1, '${phone}', '{"name":"${mark}"}'), (${accountId}, 1, '+48100000000', null) on conflict do nothing`,
    `insert into removed_members (account_id, group_number, phone, generation, removed_generation, attributes)
     values (${accountId}, 1, '${phone}', 1, 2, '{"name":"${mark}"}') on conflict do nothing`,
    `insert into sms_queue (message_id, copy, account_id, recipient, priority, planned_at, due_at, expires_at, segments)
     select id, 1, ${accountId}, '${phone}', 2, now(), now() + interval '1 day', now() + interval '2 days', 1 from filled`,
    `insert into sms_segments (message_id, copy, segment, carrier, carrier_message_id, recipient, detail)
     select id, 0, 1, 'smsc', id, '${phone}', ${words} from filled`,
    `insert into sms_receipts (carrier, carrier_message_id, recipient, event_id, reading, state, detail, occurred_at)
     select 'smsc', id, '${phone}', id, 0, 'delivered', '', now() from filled`,
    `insert into sms_contacts values (${accountId}, '${phone}', 'Shop', '${agentId}', gen_random_uuid(), false, now())`,
    `insert into short_links (code, account_id, message_id, copy, agent_id, recipient, url)
     select left(md5(id::text), 11), ${accountId}, id, n % 2, '${agentId}', '${phone}', case n % 2 when 0 then 'https://example.com/${mark}' else 'https://example.com' end
     from filled`,
    // The links in a copy of the person's SMS, for a test number.
    `insert into short_links (code, account_id, message_id, copy, agent_id, recipient, url)
     select left(md5('copy' || id), 11), ${accountId}, id, 2, '${agentId}', '+48500999999', 'https://example.com/${mark}' from filled where n = 1`,
    `insert into capabilities (phone, agent_id, carrier, reachable, checked_at) values ('${phone}', '${agentId}', 'simulator', true, now())`,
    `insert into auto_reply_turns values (${accountId}, '${phone}', now())`,
    `insert into contents (account_id, basic, message) values (${accountId}, false, '{}')`,
    `insert into campaigns (id, account_id, agent_id, name, group_numbers, group_generations, basic, content_id, fallback, status, scheduled_at, started_at,
       fan_out_cursor)
     select uuid_v7(), ${accountId}, '${agentId}', 'Sale', '{1}', '{0}', false, 1, json_build_object('plan', ${toAnother}), 'RUNNING',
       now(), now(), '${phone}'`,
    `insert into campaign_copies select id, '${phone}' from campaigns where fan_out_cursor = '${phone}' and account_id = ${accountId}`,
    `insert into carrier_events (carrier, event_id, kind, phone, occurred_at, event, process_after)
     select 'simulator', id, 'wrote', '${phone}', now(), json_build_object('phone', '${phone}', 'text', '${mark}', 'kind', 'wrote', 'agentId', '${agentId}', 'carrier', 'simulator'),
       now() + interval '1 day' from filled where n = 1`,
    // Receipts of unknown messages.
    `insert into carrier_events (carrier, event_id, kind, phone, occurred_at, event)
     select 'simulator', id, 'delivered', '${phone}', now(), json_build_object('phone', '${phone}', 'kind', 'delivered', 'agentId', '${agentId}', 'carrier', 'simulator')
     from filled where n > 1`,
    `insert into idempotency_keys (account_id, endpoint, key, request_hash, resource_id)
     select ${accountId}, 'messages', 'sms ${phone.slice(1)} ' || id, sha256(id::text::bytea), id from filled`,
    `insert into log_pages (account_id, event_count, last_position, events)
     select ${accountId}, 2, case when n > 1 then ${base} + 2 * (n * 3 + m) end, json_build_array(
       json_build_array('message.failed', now(), id, '${mark}', '${agentId}', '${phone}', null, false,
         json_build_object('failure', json_build_object('reason', 'NOT_REACHABLE', 'description', ${words}))),
       json_build_array('recipient.opted_out', now(), null, null, null, null, null, null, json_build_object('recipient', '${phone}', 'text', '${mark}', 'buttonId', 'yes-${mark}')))
     from filled`,
    `insert into webhook_attempts (endpoint_id, account_id, position, attempt, attempted_at, duration_ms, status, error, response)
     select 1, ${accountId}, ${base} + 2 * (n * 3 + m), 1, now(), 5, 200, case n when 1 then 'no ${phone}, ${phone.slice(1)}' end, case when n > 1 then '${mark}' else 'got ${phone}' end from filled`,
  ])
    await pool.query(statement)
  await ownerOf(pool).query('drop table filled')
}
