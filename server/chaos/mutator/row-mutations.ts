// Mutations of rows, for the checks whose comparison the database makes, and for the code that reads the history. They run in a transaction
// that is rolled back.

/** `checks`: those that must fail. If a statement returns an `id`, one of them has to name it. */
export type RowMutation = { what: string; checks: string[]; statements: string[] }

const RULES = 'rows keep the rules of their tables'
const COUNTERS = 'counters equal rows'
const STATUS_COUNTS = 'status counts of campaigns equal their messages'
const EMITTED = 'every change is emitted once'
const LOG = 'the log has each position once, in order'
const FEED = 'the feed equals the log'
const LEASES = 'results are stored by the holder of the lease'
const REMAINING = 'nothing remains to be done'
const WALK = 'the walk of expiries skips no open message'
const STEPS = 'columns equal timelines, events and the API'

const mutation = (what: string, checks: string[], ...statements: string[]): RowMutation => ({ what, checks, statements })

const onePage = (condition: string, order = 'last_position') =>
  `(account_id, page_id) in (select account_id, page_id from log_pages where ${condition} order by ${order} limit 1)`
const OF_MESSAGE = `events -> 0 ->> 0 like 'message.%'`
const OF_A_CAMPAIGN = `ctid = (select ctid from report_totals where campaign_id = (select campaign_id from messages where campaign_id is not null limit 1) limit 1)`
const QUEUE_EXPIRED = `insert into queue (message_id, account_id, agent_id, task, priority, due_at, expires_at, lease, leased_until)
  select id, account_id, agent_id, 'revoke', 1, now(), expires_at, gen_random_uuid(), now() + interval '1 hour' from messages
  where status = 'EXPIRED' order by id limit 1 returning message_id as id`

/** Each of these counters is part of the count of a status. */
const COUNTER_NAMES = ['accepted', 'sent', 'delivered', 'read', 'failed', 'expired', 'unsent', 'claimed']

export const ROW_MUTATIONS: RowMutation[] = [
  mutation(
    'a recipient is no phone number',
    [RULES],
    `update messages set recipient = 'x' where id = (select min(id::text)::uuid from messages) returning id`,
  ),
  mutation('an account has used one message more', [COUNTERS], 'update account_usage set messages = messages + 1'),
  mutation(
    'every counter of deliveries is off by one',
    [COUNTERS],
    'update report_totals set delivered = delivered + 1 where delivered > 0',
  ),
  ...COUNTER_NAMES.flatMap((counter) =>
    ['+', '-'].map((sign) =>
      mutation(
        `a campaign counts ${counter} ${sign} 1`,
        [COUNTERS, STATUS_COUNTS],
        `update report_totals set ${counter} = ${counter} ${sign} 1 where ${OF_A_CAMPAIGN} returning campaign_id as id`,
      ),
    ),
  ),
  mutation(
    'a change that is not folded yet is counted twice',
    [COUNTERS, STATUS_COUNTS],
    `insert into report_deltas (account_id, campaign_id, hour, sent) select account_id, campaign_id, hour, 1 from report_totals where ${OF_A_CAMPAIGN}
     returning campaign_id as id`,
  ),
  mutation(
    'a page is dropped',
    [EMITTED, LOG, FEED, STEPS],
    `delete from log_pages where ${onePage(OF_MESSAGE)} returning events -> 0 ->> 2 as id`,
  ),
  mutation(
    'an event is dropped from its page',
    [RULES, EMITTED, LOG, FEED, STEPS],
    `update log_pages set events = (events::jsonb - 0)::json where ${onePage(`event_count > 1 and ${OF_MESSAGE}`)} returning page_id as id`,
  ),
  mutation(
    'a page is duplicated, with positions of its own',
    [EMITTED, FEED],
    `insert into log_pages (account_id, event_count, events, last_position)
     select p.account_id, p.event_count, p.events, h.last_position + p.event_count from log_pages p join log_heads h using (account_id)
     where ${onePage(OF_MESSAGE)} returning events -> 0 ->> 2 as id`,
    `update log_heads h set last_position = (select max(last_position) from log_pages p where p.account_id = h.account_id)`,
  ),
  mutation(
    'two pages have one position',
    [LOG],
    `update log_pages set last_position = last_position - 1 where ${onePage('event_count > 1 and last_position > event_count')} returning page_id as id`,
  ),
  mutation(
    'a page has no position',
    [LOG, FEED, REMAINING],
    `update log_pages set last_position = null where ${onePage('last_position > 1')} returning page_id as id`,
  ),
  mutation(
    'a page has moved behind a position that was read',
    [LOG, FEED],
    `update log_pages set last_position = 0 where ${onePage('true', 'last_position desc')} returning page_id as id`,
  ),
  mutation(
    'two pages of a message are swapped',
    [LOG, FEED],
    `create temporary table swapped on commit drop as
     with event as materialized (
       select p.account_id, p.page_id, p.last_position, e ->> 0 as kind, e ->> 2 as id from log_pages p, json_array_elements(p.events) as e
     )
     select one.account_id, one.page_id as one, other.page_id as other, one.last_position as one_at, other.last_position as other_at, one.id
     from event one join event other on one.id = other.id and one.page_id <> other.page_id
     where one.kind = 'message.sent' and other.kind = 'message.delivered' limit 1`,
    `create temporary table moved on commit drop as
     select p.page_id, sum(p.event_count) over (
       order by case p.page_id when s.one then s.other_at when s.other then s.one_at else p.last_position end) as position
     from log_pages p join swapped s using (account_id)`,
    // By way of positions that no page has, since positions are unique.
    'update log_pages p set last_position = -m.position from moved m where p.page_id = m.page_id',
    'update log_pages p set last_position = -last_position where last_position < 0',
    'select id from swapped',
  ),
  mutation('the head of an account is behind', [LOG], 'update log_heads set last_position = last_position - 1'),
  mutation('an entry stays leased', [LEASES, REMAINING], QUEUE_EXPIRED),
  mutation('a running lease is taken over', [LEASES], QUEUE_EXPIRED, 'update queue set lease = gen_random_uuid()', 'delete from queue'),
  mutation(
    'the walk has skipped an open message',
    [WALK, REMAINING],
    'update expiry_walk set reached = uuid_v7_from(now())',
    `update messages set status = 'SENT' where id = (select min(id::text)::uuid from messages where status = 'READ') returning id`,
  ),
  mutation(
    'the walk is ahead, and no message is open',
    [WALK],
    `update expiry_walk set reached = uuid_v7_from(now() - interval '47 hours 59 minutes')`,
  ),
  mutation(
    'the timeline of a campaign lacks a step',
    [STEPS, COUNTERS],
    `delete from message_events where (message_id, kind, occurred_at) in (
       select message_id, kind, occurred_at from message_events where campaign_id is not null and kind = 'delivered' limit 1) returning message_id as id`,
  ),
]
