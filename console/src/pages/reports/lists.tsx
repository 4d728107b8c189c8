import { useState } from 'preact/hooks'
import { isAboutMessages } from '../../app/fresh.ts'
import { filter, linkTo, type Place } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { AsCurl } from '../../kit/as-curl.tsx'
import { Select } from '../../kit/controls.tsx'
import { Ago, Empty } from '../../kit/display.tsx'
import { LongTable } from '../../kit/long-table.tsx'
import { grouped } from '../../kit/phone-number.ts'
import { sentence, shortOf } from '../../timeline/outcome.ts'
import * as say from '../../words/en-reports.ts'
import { failures, fallback, smsFailures } from '../../words/en-timeline.ts'
import { readTable, TableCsv } from './download.tsx'
import { type Days, reportsOf, withQuery } from './range.ts'

/** The lists of the API, which has the recipients by the state that their messages reached, and what they did. */
const LISTS = {
  accepted: say.counts.accepted,
  sent: say.counts.sent,
  delivered: say.counts.delivered,
  read: say.counts.read,
  failed: say.counts.failed,
  expired: say.counts.expired,
  clicked: say.counts.clicked,
  replied: say.counts.replied,
  'opted-out': say.counts.optedOut,
  'sms-sent': say.counts['smsFallback.sent'],
  'sms-delivered': say.counts['smsFallback.delivered'],
  'sms-failed': say.counts['smsFallback.failed'],
  actions: say.did,
}
type ListName = keyof typeof LISTS

/** A recipient, with the reason of a failure, or with what they did. */
type Item = {
  messageId: string
  recipient: string
  occurredAt: string
  reason?: string | null
  action?: keyof typeof say.actions
  buttonId?: string | null
  text?: string | null
  payload?: string | null
  url?: string | null
}
const REACHED = ['messageId', 'recipient', 'occurredAt', 'reason'] as const
const DID = ['messageId', 'recipient', 'action', 'occurredAt', 'buttonId', 'text', 'payload', 'url'] as const

const REASONS = { ...smsFailures, ...fallback, ...failures }

const FRESH = { restMs: 15_000, isAbout: isAboutMessages }

type Props = { place: Place; campaignId: string; days: Days }

/** The recipients of a campaign by the state that their message reached, or everything that they did. */
export function CampaignLists({ place, campaignId, days }: Props) {
  const { role, accountId } = useFrame().account
  const asked = place.query.get('list') ?? ''
  const list = (Object.hasOwn(LISTS, asked) ? asked : 'failed') as ListName
  const hasActions = list === 'actions'
  const report = withQuery(`${reportsOf(campaignId)}/${hasActions ? 'action-details' : `recipients/${list}`}`, days)
  const path = `/accounts/${accountId}/${report}`
  const [cut, setCut] = useState('')
  const table = async (signal: AbortSignal) => {
    const read = await readTable<keyof Item>(path, hasActions ? DID : REACHED, signal)
    if (read.isCut) setCut(path)
    return read
  }
  return (
    <section class="report-lists">
      <div class="title-row">
        <h2>{say.list}</h2>
        <span class="spring" />
        {/* Viewers get no exports. */}
        {role !== 'viewer' && <TableCsv key={path} title={LISTS[list]} file={`campaign-${campaignId}-${list}`} table={table} />}
        <AsCurl path={report} />
      </div>
      <p class="note" role="status">
        {cut === path && say.csvCut}
      </p>
      <Select
        label={say.which}
        value={list}
        options={Object.entries(LISTS).map(([value, text]) => ({ value, text }))}
        onChange={(chosen) => filter(place, { list: chosen })}
      />
      <LongTable<Item>
        label={LISTS[list]}
        path={path}
        fresh={FRESH}
        columns={[
          { title: say.columns.recipient },
          { title: hasActions ? say.columns.action : say.columns.reason },
          { title: say.columns.occurredAt },
        ]}
        keyOf={({ messageId, action, occurredAt, text, url }) => [messageId, action, occurredAt, text, url].join()}
        empty={<Empty icon="users" title={say.nothing} />}
        cells={(item) => <Cells {...item} />}
      />
    </section>
  )
}

function Cells({ messageId, recipient, reason, action, text, url, occurredAt }: Item) {
  const { accountId } = useFrame().account
  return (
    <>
      <td>
        <a class="row-link is-number" href={linkTo({ accountId, path: ['messages', messageId] })}>
          {grouped(recipient)}
        </a>
      </td>
      <td class="breaks">
        {action ? say.actions[action] : reason && sentence(shortOf(REASONS, reason))}
        <small>{url ?? text}</small>
      </td>
      <td class="when">
        <Ago at={occurredAt} />
      </td>
    </>
  )
}
