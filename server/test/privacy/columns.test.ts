import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../support/database.ts'

const { pool } = await createTestDatabase()

/** Columns that can have a number of a person, or a text to or from them. src/privacy/places.ts and events/erase.ts erase them. */
const PERSONAL = `
  campaign_copies.phone capabilities.phone campaigns.fallback campaigns.fan_out_cursor carrier_events.event carrier_events.phone
  auto_reply_turns.phone group_members.attributes group_members.phone group_members.time_zone idempotency_keys.key
  idempotency_keys.request_hash log_pages.events
  message_events.detail message_events.recipient messages.client_reference_id messages.content messages.delivery_window messages.failure_description messages.recipient
  queue.delivery_window
  opt_outs.phone removed_members.attributes removed_members.phone removed_members.time_zone recipient_actions.button_id recipient_actions.payload recipient_actions.recipient recipient_actions.text recipient_actions.url
  short_links.recipient short_links.url sms_contacts.recipient sms_contacts.sender sms_fallbacks.detail sms_fallbacks.plan sms_queue.recipient
  sms_receipts.detail sms_receipts.recipient sms_segments.detail sms_segments.recipient webhook_attempts.response webhook_attempts.error`

/** Columns of people who administer Herald, and of what they did. An erasure of a recipient does not concern them. */
const OF_ADMINS = `
  admin_tokens.name admin_tokens.role admin_tokens.secret_hash audit_log.action audit_log.actor_kind audit_log.actor_name audit_log.address
  audit_log.after audit_log.before audit_log.request_id audit_log.subject people.email people.name people.oidc_issuer people.oidc_subject
  people.password_hash people_links.secret_hash people_roles.role sessions.address sessions.secret_hash sessions.user_agent
  sign_in_tries.address sign_in_tries.name_hash`

/** All others: ids, states, secrets, and texts that the account or the operator writes for more than one person (docs/privacy.md lists them). */
const NOT_PERSONAL = `
  accounts.campaign_window accounts.modules accounts.name agent_assignments.agent_id agent_assignments.display_name agents.agent_id agents.billing_type agents.carrier
  agents.name auto_replies.agent_id auto_replies.keyword campaigns.agent_id campaigns.client_reference_id campaigns.delivery_window campaigns.name campaigns.routing
  campaigns.status campaigns.variables capabilities.agent_id capabilities.carrier
  carrier_events.carrier carrier_events.event_id carrier_events.kind carrier_rates.carrier contents.message erased_people.hash erased_people.seed
  groups.name idempotency_keys.endpoint integration_key_uses.integration_key integration_keys.integration_key integration_keys.scopes integration_keys.secret_hash
  message_events.kind message_events.reason messages.agent_id messages.failure_reason messages.routing messages.status messages.traffic
  node_status.figures node_status.host node_status.roles node_status.version opt_outs.agent_id
  opt_outs.source queue.agent_id queue.task rate_limit_windows.bucket recipient_actions.agent_id
  recipient_actions.channel recipient_actions.kind schema_migrations.checksum schema_migrations.name secrets.key_id secrets.name secrets.value
  short_links.agent_id short_links.code sms_contacts.agent_id sms_fallbacks.reason sms_fallbacks.status sms_receipts.carrier
  sms_receipts.carrier_message_id sms_receipts.event_id sms_receipts.state sms_segments.carrier sms_segments.carrier_message_id
  sms_segments.state template_versions.status templates.description templates.name templates.status templates.type webhook_attempts.subject_id webhook_deliveries.subject_id
  webhook_endpoints.disabled_because webhook_endpoints.kinds webhook_endpoints.status webhook_endpoints.url webhook_secrets.key_id
  webhook_secrets.value`

test('every column that can have a text is known to be personal or not', async () => {
  const { rows } = await pool.query<{ name: string }>(
    `select c.table_name || '.' || c.column_name as name from information_schema.columns c
     where c.table_schema = 'public' and c.table_name !~ '_\\d{4}_\\d{2}$' and c.udt_name in ('text', 'json', 'jsonb', 'bytea', '_text', 'varchar')`,
  )
  const known = `${PERSONAL} ${OF_ADMINS} ${NOT_PERSONAL}`.trim().split(/\s+/)
  assert.deepEqual(rows.map(({ name }) => name).sort(), known.sort())
})
