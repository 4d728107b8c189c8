import { linkHere } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { Announcement } from '../../kit/announcement.tsx'
import { ButtonLink } from '../../kit/controls.tsx'
import { Icon } from '../../kit/icon.tsx'
import { useEndpoints } from '../../timeline/endpoints.ts'
import * as frameWords from '../../words/en-frame.ts'
import * as say from '../../words/en-phones.ts'
import { clockOf, exactTimeOf } from '../../words/numbers.ts'
import type { LedgerEntry } from './ledger.ts'
import type { PhoneSummary } from './phone.ts'
import { type Line, lineOf, ownLine } from './saw-lines.ts'
import type { Timelines } from './timelines.ts'

const LINES_SHOWN = 14

type Props = { phone: PhoneSummary; timelines: Timelines; entries: LedgerEntry[] }

/** What Herald saw of the phone: the timelines of its last messages, and what its owner did. */
export function Saw({ phone, timelines, entries }: Props) {
  const { account, live } = useFrame()
  const hasWebhook = [...timelines.values()].some((items) => items.some(({ step }) => step === 'webhook-attempt'))
  const lines = linesOf(timelines, entries, useEndpoints(account.accountId, hasWebhook))
  const last = [...timelines.keys()].at(-1)
  const lastLine = lines.at(-1)
  return (
    <section class="card saw" aria-label={say.saw}>
      <h2>
        {say.saw} <span class={`pulse is-${live}`} /> <small>{frameWords.liveStates[live]}</small>
      </h2>
      {lines.length === 0 ? (
        <p class="soft">{say.sawNothing}</p>
      ) : (
        <ol>
          {lines.slice(-LINES_SHOWN).map((line) => (
            <SawLine key={line.key} line={line} />
          ))}
        </ol>
      )}
      <Announcement text={lastLine === undefined ? '' : say.lastStep(lastLine.title, lastLine.at)} />
      <div class="saw-links">
        {last !== undefined && (
          <ButtonLink icon="history" href={linkHere(['messages', last])}>
            {say.timeline}
          </ButtonLink>
        )}
        {account.role !== 'viewer' && last !== undefined && (
          <ButtonLink icon="list" href={linkHere(['messages'], { recipient: phone.phone })}>
            {say.allMessages}
          </ButtonLink>
        )}
      </div>
    </section>
  )
}

function SawLine({ line: { at, icon, tone, title, note, messageId } }: { line: Line }) {
  return (
    <li class={`tone-${tone}`}>
      <Icon name={icon} size={15} />
      <span>
        <b>{messageId === undefined ? title : <a href={linkHere(['messages', messageId])}>{title}</a>}</b>
        <small>{note}</small>
      </span>
      <time dateTime={at} title={exactTimeOf(at)}>
        {clockOf(at)}
      </time>
    </li>
  )
}

function linesOf(timelines: Timelines, entries: LedgerEntry[], hosts: Map<number, string>): Line[] {
  const seen = [...timelines].flatMap(([id, items]) => items.map((item, index) => lineOf(id, item, index, hosts)))
  // What the owner did before the first of these messages is not shown.
  const first = seen.reduce((earliest, { at }) => (at < earliest ? at : earliest), '9')
  const own = entries.map(ownLine).filter((line): line is Line => line !== undefined && line.at >= first)
  return [...own, ...seen].sort((one, other) => timeOf(one) - timeOf(other))
}

/** The network notes what the owner did just after the time that the event has. */
const NOTED_LATER_MS = 5

const timeOf = ({ at, messageId }: Line) => Date.parse(at) - (messageId === undefined ? NOTED_LATER_MS : 0)
