import type { Executor } from '../db/pool.ts'
import { phoneNumberInQuery } from '../phone-numbers.ts'
import { SHOWN_STATUS } from './messages.ts'

export type MessageFilters = {
  recipient?: string
  clientReferenceId?: string
  campaignId?: string
  agentId?: string
  /** Separated by commas. */
  status?: string
  test?: boolean
  acceptedFrom?: string
  acceptedTo?: string
}

/** A condition, and the values of its parameters in order: each `?` is one. `$1` is the account. */
export type Condition = [sql: string, ...values: unknown[]]

/** An index to read. `of`: a subselect; the scan is repeated for each of its rows. */
type Source = { where: Condition; of?: Condition }

/** The indexes to read, and the filters that they do not cover. */
export type Plan = { sources: Source[]; rest: Condition[] }

/** Plans a list by its most selective filter. */
export async function planOf(db: Executor, accountId: number, query: MessageFilters): Promise<Plan> {
  if (query.recipient !== undefined) return byRecipient(query)
  if (query.clientReferenceId !== undefined) return byReference(query, await countNamedCampaigns(db, accountId, query.clientReferenceId))
  if (query.campaignId !== undefined) {
    const own: Condition = ['(select id from campaigns where account_id = $1 and id = ?) as c', query.campaignId]
    return { sources: [{ of: own, where: ['m.account_id = $1 and m.campaign_id = c.id'] }], rest: [...filtersOf(query), ...ofTest(query)] }
  }
  return { sources: query.test ? [{ where: ['m.account_id = $1 and m.test'] }] : OF_ACCOUNT, rest: filtersOf(query) }
}

const IN_CAMPAIGNS = 'm.account_id = $1 and m.campaign_id is not null'
const OF_ACCOUNT: Source[] = [{ where: ['m.account_id = $1 and m.campaign_id is null and not m.test'] }, { where: [IN_CAMPAIGNS] }]

/** The filters that have no index. An index on the status would end in-place (HOT) updates of messages. */
function filtersOf({ agentId, status }: MessageFilters): Condition[] {
  return [
    ...(agentId === undefined ? [] : [['m.agent_id = ?', agentId] as Condition]),
    ...(status === undefined ? [] : [[`(${SHOWN_STATUS}) = any (?::text[])`, status.split(',')] as Condition]),
  ]
}

const ofTest = ({ test }: MessageFilters): Condition[] => (test ? [['m.test']] : [])
const ofCampaign = ({ campaignId }: MessageFilters): Condition[] => (campaignId === undefined ? [] : [['m.campaign_id = ?', campaignId]])

const ofReference = ({ clientReferenceId }: MessageFilters): Condition[] =>
  clientReferenceId === undefined ? [] : [[`coalesce(m.client_reference_id, ${REFERENCE_OF_CAMPAIGN}) = ?`, clientReferenceId]]
const REFERENCE_OF_CAMPAIGN = '(select c.client_reference_id from campaigns c where c.id = m.campaign_id)'

/** The index has the messages of all accounts to the number, and the tests among them. Both are filtered, so that others add little time. */
function byRecipient(query: MessageFilters): Plan {
  const own: Condition = ['m.account_id = $1 and m.test = ?', query.test ?? false]
  const sources: Source[] = [{ where: ['m.recipient = ?', phoneNumberInQuery(query.recipient as string)] }]
  return { sources, rest: [own, ...filtersOf(query), ...ofCampaign(query), ...ofReference(query)] }
}

/** With more campaigns of one reference, reading each of them would take longer than to look for them among all messages of the account. */
const MAX_NAMED_CAMPAIGNS = 5

/** How many campaigns have this reference, up to one more than MAX_NAMED_CAMPAIGNS. */
async function countNamedCampaigns(db: Executor, accountId: number, clientReferenceId: string): Promise<number> {
  const text = `select from campaigns where account_id = $1 and client_reference_id = $2 limit ${MAX_NAMED_CAMPAIGNS + 1}`
  return (await db.query(text, [accountId, clientReferenceId])).rowCount ?? 0
}

/** A message has its own reference, or that of its campaign. */
function byReference(query: MessageFilters, namedCampaigns: number): Plan {
  const { clientReferenceId, test } = query
  const own = { where: [`m.account_id = $1 and m.client_reference_id = ?${test ? '' : ' and not m.test'}`, clientReferenceId] } as Source
  const rest = [...filtersOf(query), ...ofTest(query), ...ofCampaign(query)]
  const withoutOwn = 'm.client_reference_id is null'
  if (namedCampaigns > MAX_NAMED_CAMPAIGNS) {
    return { sources: [own, { where: [`${IN_CAMPAIGNS} and ${withoutOwn}`] }], rest: [...rest, ...ofReference(query)] }
  }
  const named: Condition = ['(select id from campaigns where account_id = $1 and client_reference_id = ?) as c', clientReferenceId]
  return { sources: [own, { of: named, where: [`m.account_id = $1 and m.campaign_id = c.id and ${withoutOwn}`] }], rest }
}
