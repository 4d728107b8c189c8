import { linkHere } from '../../app/place.ts'
import { Copy } from '../../kit/controls.tsx'
import { Ago, Pill } from '../../kit/display.tsx'
import { grouped } from '../../kit/phone-number.ts'
import { shortOf } from '../../timeline/outcome.ts'
import type { Message } from '../../timeline/types.ts'
import { pages } from '../../words/en.ts'
import * as say from '../../words/en-messages.ts'
import { failures, fallback, smsFailures } from '../../words/en-timeline.ts'
import { StatusPills } from './status.tsx'
import '../../kit/table.css'

/** Narrow pages have room for the first two. */
const COLUMNS = [say.recipient, say.status, say.agent, say.reference, say.accepted]

type Props = { messages: Message[]; isNew: (message: Message) => boolean }

export function MessageTable({ messages, isNew }: Props) {
  return (
    <table class="long-table" aria-label={pages.messages}>
      <thead>
        <tr>
          {COLUMNS.map((name, index) => (
            <th scope="col" class={index < 2 ? '' : 'is-wide'}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {messages.map((message) => (
          <Row key={message.messageId} message={message} isNew={isNew(message)} />
        ))}
      </tbody>
    </table>
  )
}

function Row({ message, isNew }: { message: Message; isNew: boolean }) {
  const { messageId, recipient, agentId, clientReferenceId, acceptedAt, test, campaignId } = message
  const why = whyOf(message)
  return (
    <tr class={isNew ? 'is-new' : ''}>
      <td>
        <a class={`row-link ${recipient.startsWith('+') ? 'is-number' : ''}`} href={linkHere(['messages', messageId])}>
          {grouped(recipient)}
        </a>{' '}
        <Copy text={messageId} isIcon />
        {test && <Pill tone="info">{say.test}</Pill>}
        {campaignId !== undefined && <Pill tone="plain">{say.campaign}</Pill>}
        {/* Narrow pages have no columns for these. */}
        <small class="is-narrow">
          <Ago at={acceptedAt} /> · {agentId}
          {clientReferenceId !== undefined && (
            <>
              {' · '}
              <Copy text={clientReferenceId} />
            </>
          )}
        </small>
      </td>
      <td>
        <StatusPills message={message} />
        {why && <small>{why}</small>}
      </td>
      <td class="is-wide">{agentId}</td>
      <td class="is-wide">{clientReferenceId !== undefined && <Copy text={clientReferenceId} />}</td>
      <td class="is-wide when">
        <Ago at={acceptedAt} />
      </td>
    </tr>
  )
}

/** Why a message failed, or its SMS did. */
function whyOf({ failure, smsFallback }: Message): string | undefined {
  const { status, reason } = smsFallback ?? {}
  const sms = status === 'FAILED' ? shortOf(smsFailures, reason) : status === 'SKIPPED' ? shortOf(fallback, reason) : undefined
  const rcs = shortOf(failures, failure?.reason)
  return [...new Set([rcs, sms])].filter(Boolean).join('; ')
}
