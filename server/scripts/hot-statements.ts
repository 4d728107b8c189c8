import * as authenticate from '../src/accounts/authenticate.ts'
import * as quotas from '../src/accounts/quotas.ts'
import * as usage from '../src/accounts/usage.ts'
import * as campaigns from '../src/campaigns/campaigns.ts'
import { fallbacksTable } from '../src/db/partitions.ts'
import * as lifecycle from '../src/delivery/campaigns/lifecycle.ts'
import * as chunks from '../src/delivery/campaigns/statements.ts'
import * as withdraw from '../src/delivery/campaigns/withdraw.ts'
import * as cancel from '../src/delivery/cancel.ts'
import * as capabilities from '../src/delivery/capabilities.ts'
import * as claim from '../src/delivery/claim.ts'
import * as expiry from '../src/delivery/expiry.ts'
import * as fail from '../src/delivery/fail.ts'
import * as lanes from '../src/delivery/lanes.ts'
import * as postpone from '../src/delivery/postpone.ts'
import * as rate from '../src/delivery/rate.ts'
import * as readClaimed from '../src/delivery/read-claimed.ts'
import * as receipts from '../src/delivery/receipts.ts'
import * as replies from '../src/delivery/replies.ts'
import * as results from '../src/delivery/results.ts'
import * as smsClaim from '../src/delivery/sms/claim.ts'
import * as smsPostpone from '../src/delivery/sms/postpone.ts'
import * as smsReceipts from '../src/delivery/sms/receipts.ts'
import * as smsResults from '../src/delivery/sms/results.ts'
import * as schedule from '../src/delivery/sms/schedule.ts'
import * as erased from '../src/erasure/erased.ts'
import * as feed from '../src/events/feed.ts'
import * as pages from '../src/events/pages.ts'
import * as router from '../src/events/router.ts'
import * as start from '../src/events/start.ts'
import * as backlog from '../src/health/backlog.ts'
import * as nodeStatus from '../src/health/node-status.ts'
import * as standbys from '../src/health/standbys.ts'
import * as limits from '../src/http/limits-database.ts'
import * as links from '../src/links/links.ts'
import * as accept from '../src/messages/accept.ts'
import * as messages from '../src/messages/messages.ts'
import * as sendTemplate from '../src/messages/send-template.ts'
import * as sessions from '../src/people/sessions.ts'
import * as tokens from '../src/people/tokens.ts'
import * as actions from '../src/replies/actions.ts'
import * as attribution from '../src/replies/attribution.ts'
import * as optOuts from '../src/replies/opt-outs.ts'
import * as counters from '../src/reports/counters.ts'
import * as webhookClaim from '../src/webhooks/claim.ts'
import * as webhookResults from '../src/webhooks/results.ts'
import * as recipients from '../src/windows/recipients.ts'

// The hot statements: they run for each message, or in the loops beside it, on the hot pool (db/pool.ts). `npm run generate` writes them to
// docs/sql, and test/db/plans.test.ts checks their plans.

export type HotStatement = {
  /** As in the server's log and in pg_prepared_statements, without the month. */
  name: string
  /** The file in server/src that has it. */
  file: string
  does: string
  text: string
  /** The settings that its transaction makes before it. */
  settings?: string
}

/** The hot statements of each feature. `messagesTable`: the messages of one month. */
export function hotStatements(messagesTable: string): Record<string, HotStatement[]> {
  return {
    requests: forRequests(),
    delivery: forDelivery(messagesTable),
    receipts: forReceipts(messagesTable),
    expiry: forExpiry(messagesTable),
    sms: forSms(messagesTable),
    replies: forReplies(),
    campaigns: [...forFanOut(messagesTable), ...forListedMembers(), ...forCampaigns(messagesTable)],
    events: forEvents(),
    counters: forCounters(),
    console: forConsole(),
  }
}

type Row = [name: string, file: string, does: string, text: string, settings?: string]

const statements = (...rows: Row[]): HotStatement[] =>
  rows.map(([name, file, does, text, settings]) => ({ name, file, does, text, ...(settings !== undefined && { settings }) }))

const forRequests = () =>
  statements(
    ['authenticate', 'accounts/authenticate.ts', 'Looks up the callers of requests by their integration keys.', authenticate.AUTHENTICATE],
    ['count-hits', 'http/limits-database.ts', 'Counts requests in sliding windows that all nodes share.', limits.COUNT_HITS],
    ['read-usage', 'accounts/quotas.ts', 'Reads the quotas and the usage of accounts.', quotas.READ_USAGE],
    ['was-accepted', 'messages/accept.ts', 'Finds out whether a request was accepted under its key.', accept.WAS_ACCEPTED],
    ['accept-messages', 'messages/accept.ts', 'Checks and accepts the messages of a batch of requests.', accept.ACCEPT_MESSAGES],
    ['read-time-zones', 'windows/recipients.ts', 'Reads the time zones of a recipient with a delivery window.', recipients.READ_TIME_ZONES],
    ['read-message', 'messages/messages.ts', 'Reads a message for GET /v1/messages/{messageId}.', messages.READ_MESSAGE],
    ['find-start', 'events/start.ts', 'Finds the position of the event feed for GET /v1/events?since=.', start.FIND_START],
    ['find-ends', 'events/start.ts', 'Finds the ends of the logs of accounts, for GET /v1/events?after=now and streams.', start.FIND_ENDS],
    ['read-feed', 'events/feed.ts', 'Reads a page of the event feed for GET /v1/events.', feed.READ_FEED],
  )

const forDelivery = (messagesTable: string) =>
  statements(
    ['lock-rate', 'delivery/rate.ts', "Locks a carrier's rate for a claim.", rate.LOCK_RATE],
    ['read-lanes', 'delivery/lanes.ts', 'Reads the lanes of a carrier that have entries to send now.', lanes.READ_LANES],
    ['lease-entries', 'delivery/claim.ts', 'Leases the next entries of each lane.', claim.LEASE_ENTRIES],
    ['postpone-entries', 'delivery/postpone.ts', 'Postpones entries whose delivery window is closed.', postpone.POSTPONE_ENTRIES],
    ['take-slots', 'delivery/rate.ts', 'Takes slots of the rates of a carrier and its agents.', rate.TAKE_SLOTS],
    ['find-erased', 'erasure/erased.ts', 'Finds erased numbers. Runs only if a person was erased.', erased.FIND_ERASED],
    ['read-claimed', 'delivery/read-claimed.ts', 'Reads the messages of claimed entries.', readClaimed.readMonth(messagesTable)],
    [
      'read-capabilities',
      'delivery/capabilities.ts',
      'Reads what networks said about numbers. Runs only before a look-up.',
      capabilities.READ_CAPABILITIES,
    ],
    ['read-ahead', 'delivery/capabilities.ts', 'Reads the next numbers to look up.', capabilities.READ_AHEAD],
    ['store-capabilities', 'delivery/capabilities.ts', 'Stores what a network said about numbers.', capabilities.STORE_CAPABILITIES],
    ['record-sent', 'delivery/results.ts', 'Records that messages were sent.', results.STATEMENTS.sent.text(messagesTable)],
    ['record-failed', 'delivery/results.ts', 'Fails messages permanently.', results.STATEMENTS.failed.text(messagesTable)],
    ['record-erased', 'delivery/results.ts', 'Fails messages to erased people.', results.STATEMENTS.erased.text(messagesTable)],
    ['record-released', 'delivery/results.ts', 'Releases and postpones entries.', results.STATEMENTS.retry.text(messagesTable)],
    ['record-revoked', 'delivery/results.ts', 'Ends revocations.', results.STATEMENTS['revoke-asked'].text(messagesTable)],
    ['find-inactive', 'delivery/fail.ts', 'Finds waiting messages whose agent was deactivated.', fail.FIND_INACTIVE],
    [
      'fail-waiting AGENT_INACTIVE',
      'delivery/fail.ts',
      'Fails waiting messages whose agent was deactivated.',
      fail.failMonth(messagesTable, 'AGENT_INACTIVE', schedule.scheduleFailed, { because: fail.INACTIVE }),
    ],
    ['cancel-message', 'delivery/cancel.ts', 'Fails a message that its caller cancels.', cancel.cancelOfMonth(messagesTable)],
  )

const forReceipts = (messagesTable: string) =>
  statements(
    ['apply-receipts', 'delivery/receipts.ts', 'Moves messages by the receipts of phones.', receipts.applyMonthReceipts(messagesTable)],
    ['note-receipts', 'delivery/receipts.ts', 'Notes receipts that move no message.', receipts.noteMonthReceipts(messagesTable)],
    [
      'release-after-revocation',
      'delivery/sms/schedule.ts',
      'Ends the wait of SMS whose message was revoked.',
      schedule.releaseOfMonth(messagesTable),
    ],
    ['store-carrier-events', 'delivery/receipts.ts', 'Stores events of carriers, such as replies.', receipts.STORE_EVENTS],
  )

const forExpiry = (messagesTable: string) =>
  statements(
    ['find-expired', 'delivery/expiry.ts', 'Finds out whether messages have expired.', expiry.FIND_EXPIRED],
    ['delete-expiries', 'delivery/expiry.ts', 'Deletes expiries that have passed, and reads their messages.', expiry.DELETE_EXPIRIES],
    ['walk-expired', 'delivery/expiry.ts', 'Reads the next messages that are older than the default lifetime.', expiry.WALK_EXPIRED],
    ['expire', 'delivery/expiry.ts', 'Marks messages as expired, and queues their revocation.', expiry.markExpired(messagesTable)],
    [
      'settle-expired',
      'delivery/sms/schedule.ts',
      'Schedules or skips the SMS of expired messages.',
      schedule.settleOfMonth(messagesTable, fallbacksTable(messagesTable)),
    ],
  )

const forSms = (messagesTable: string) =>
  statements(
    ['find-due-sms', 'delivery/sms/claim.ts', 'Finds due SMS.', smsClaim.FIND_DUE],
    ['hold-sms', 'delivery/sms/claim.ts', 'Locks due SMS.', smsClaim.HOLD],
    ['check-sms', 'delivery/sms/claim.ts', 'Checks whether to submit locked SMS.', smsClaim.CHECK],
    ['postpone-sms', 'delivery/sms/postpone.ts', 'Postpones SMS whose delivery window is closed.', smsPostpone.POSTPONE_SMS],
    [
      'show-postponed-sms',
      'delivery/sms/postpone.ts',
      'Shows when postponed SMS are due.',
      smsPostpone.showPostponed(fallbacksTable(messagesTable)),
    ],
    ['lease-sms', 'delivery/sms/claim.ts', 'Leases SMS, and notes what the rules said.', smsClaim.LEASE],
    ['create-short-links', 'links/links.ts', 'Stores the short links of an SMS.', links.CREATE_LINKS],
    ['settle-sms-queue', 'delivery/sms/results.ts', 'Records the results of SMS in the queue.', smsResults.SETTLE_QUEUE],
    ['end-sms', 'delivery/sms/results.ts', 'Ends SMS, and queues their copies.', smsResults.endSms(messagesTable)],
    ['note-sms-retries', 'delivery/sms/results.ts', 'Notes why SMS are tried again.', smsResults.noteRetriesOf(messagesTable)],
    ['note-contacts', 'delivery/sms/results.ts', 'Notes which recipients have an SMS.', smsResults.NOTE_CONTACTS],
    ['store-sms-receipts', 'delivery/sms/receipts.ts', 'Stores receipts of SMS.', smsReceipts.STORE_RECEIPTS],
    ['apply-sms-receipts', 'delivery/sms/receipts.ts', 'Applies receipts to the segments of SMS.', smsReceipts.APPLY],
    ['settle-sms', 'delivery/sms/receipts.ts', 'Moves SMS by the states of their segments.', smsReceipts.settleSms(messagesTable)],
  )

const forReplies = () =>
  statements(
    ['find-replies', 'delivery/replies.ts', 'Finds replies to process.', replies.FIND_REPLIES],
    ['claim-reply', 'delivery/replies.ts', 'Claims a reply to process.', replies.CLAIM_REPLY],
    ['find-replied-message', 'replies/attribution.ts', 'Finds the message that a recipient replies to.', attribution.FIND_REPLIED_MESSAGE],
    ['find-replied-sms', 'replies/attribution.ts', 'Finds the SMS that a recipient replies to.', attribution.FIND_REPLIED_SMS],
    ['find-tapped', 'replies/attribution.ts', 'Finds the message whose button was tapped.', attribution.FIND_TAPPED],
    ['record-action', 'replies/actions.ts', 'Records an action of a recipient.', actions.RECORD_ACTION],
    ['record-opt-out', 'replies/opt-outs.ts', 'Records an opt-out or opt-in.', optOuts.RECORD_OPT_OUT],
    ['send-template', 'messages/send-template.ts', 'Accepts a template that a recipient asked for.', sendTemplate.SEND_TEMPLATE],
  )

const forFanOut = (messagesTable: string) =>
  statements(
    ['find-campaign', 'delivery/campaigns/statements.ts', 'Finds out whether a campaign needs fan-out.', chunks.FIND_CAMPAIGN],
    ['lock-campaign', 'delivery/campaigns/statements.ts', 'Locks the next campaign to fan out.', chunks.LOCK_CAMPAIGN],
    [
      'create-campaign-messages 2',
      'delivery/campaigns/statements.ts',
      'Creates the next messages of a campaign for two groups.',
      chunks.createFromGroups([1, 2]),
      chunks.IN_ORDER,
    ],
    [
      'create-retried-messages',
      'delivery/campaigns/statements.ts',
      'Creates the next messages of a campaign that retries another one.',
      chunks.CREATE_RETRIED,
      chunks.IN_ORDER,
    ],
    [
      'create-listed-messages',
      'delivery/campaigns/statements.ts',
      'Creates the messages of listed members, with contents of their own.',
      chunks.CREATE_LISTED,
      chunks.IN_ORDER,
    ],
    ['fail-unfit', 'delivery/fail.ts', 'Fails new messages whose recipients have no fitting values.', fail.failUnfitOfMonth(messagesTable)],
  )

const forListedMembers = () =>
  statements(
    [
      'read-members 2 2',
      'delivery/campaigns/statements.ts',
      'Reads the next members of two groups, with two attributes.',
      chunks.readMembers([1, 2], ['a', 'b'], false),
      chunks.IN_ORDER,
    ],
    [
      'read-members 2 2 zoned',
      'delivery/campaigns/statements.ts',
      'Reads the next members of two groups, with two attributes and their time zones.',
      chunks.readMembers([1, 2], ['a', 'b'], true),
      chunks.IN_ORDER,
    ],
    [
      'read-retried-members 2',
      'delivery/campaigns/statements.ts',
      'Reads the next recipients of a retry, with what their messages had.',
      chunks.readRetriedMembers(['a', 'b']),
      chunks.IN_ORDER,
    ],
    [
      'read-personal-campaign',
      'delivery/campaigns/statements.ts',
      'Reads the content, the SMS and the values of a campaign with variables.',
      chunks.READ_PERSONAL,
    ],
  )

const forCampaigns = (messagesTable: string) =>
  statements(
    ['start-campaigns', 'delivery/campaigns/lifecycle.ts', 'Starts campaigns whose start time has passed.', lifecycle.START],
    ['complete-campaigns', 'delivery/campaigns/lifecycle.ts', 'Completes campaigns with no message left to send.', lifecycle.COMPLETE],
    ['find-cancelled', 'delivery/campaigns/withdraw.ts', 'Finds waiting messages of cancelled campaigns.', withdraw.FIND_CANCELLED],
    [
      'fail-waiting CAMPAIGN_CANCELLED',
      'delivery/fail.ts',
      'Fails waiting messages of cancelled campaigns.',
      fail.failMonth(messagesTable, 'CAMPAIGN_CANCELLED', schedule.skipCancelled, { because: withdraw.CANCELLED }),
    ],
    ['make-cancelled-sms-due', 'delivery/campaigns/withdraw.ts', 'Makes waiting SMS of cancelled campaigns due.', withdraw.MAKE_SMS_DUE],
    ['end-withdrawing', 'delivery/campaigns/withdraw.ts', 'Ends the withdrawal of cancelled campaigns.', withdraw.END_WITHDRAWING],
  )

const forEvents = () =>
  statements(
    ['find-unplaced', 'events/router.ts', 'Finds out whether pages wait for their positions.', router.FIND_UNPLACED],
    ['place-pages', 'events/router.ts', 'Gives pages their positions in the log of their account.', router.PLACE],
    ['address-events', 'events/router.ts', 'Queues the events of new pages for webhook endpoints.', router.ADDRESS],
    ['claim-webhooks', 'webhooks/claim.ts', 'Claims endpoints, and reads their due deliveries.', webhookClaim.CLAIM],
    ['read-events-at', 'events/pages.ts', 'Reads the events of deliveries.', pages.READ_EVENTS_AT],
    ['read-webhook-endpoints', 'webhooks/claim.ts', 'Reads the URLs and secrets of endpoints.', webhookClaim.READ_TARGETS],
    ['record-webhook-attempts', 'webhooks/results.ts', 'Records the results of attempts.', webhookResults.RECORD],
  )

const forCounters = () =>
  statements(
    ['fold-reports', 'reports/counters.ts', 'Folds deltas of reports into totals.', counters.FOLD_REPORTS],
    ['fold-usage', 'accounts/usage.ts', 'Folds deltas of usage into totals.', usage.FOLD_USAGE],
  )

const forConsole = () =>
  statements(
    ['find-running', 'campaigns/campaigns.ts', 'Finds running campaigns, for streams.', campaigns.FIND_RUNNING],
    ['read-campaigns', 'campaigns/campaigns.ts', 'Reads campaigns with their counts, for streams.', campaigns.READ_CAMPAIGNS],
    ['find-session-rights', 'people/sessions.ts', 'Reads what the sessions of streams may do.', sessions.FIND_SESSION_RIGHTS],
    ['find-token-rights', 'people/tokens.ts', 'Reads what the tokens of streams may do.', tokens.FIND_TOKEN_RIGHTS],
    ['write-node-status', 'health/node-status.ts', 'Writes the status of this process.', nodeStatus.WRITE_NODE_STATUS],
    ['read-nodes', 'health/node-status.ts', 'Reads the status of all processes.', nodeStatus.READ_NODES],
    ['read-standbys', 'health/standbys.ts', 'Reads which standbys the database has.', standbys.READ_STANDBYS],
    ['read-queue', 'health/backlog.ts', 'Reads how many messages are due, and since when.', backlog.READ_QUEUE],
    ['read-sms-queue', 'health/backlog.ts', 'Reads how many SMS are due, and since when.', backlog.READ_SMS_QUEUE],
    ['read-webhook-backlog', 'health/backlog.ts', 'Reads how many deliveries to endpoints are due.', backlog.READ_WEBHOOK_BACKLOG],
  )
