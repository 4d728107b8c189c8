import { linkTo } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { Copy } from '../../kit/controls.tsx'
import { Ago, Pill } from '../../kit/display.tsx'
import { grouped } from '../../kit/phone-number.ts'
import type { Message } from '../../timeline/types.ts'
import { words } from '../../words/words.ts'
import { StatusPills } from './status.tsx'

const say = words.messages

type Props = { messages: Message[]; isNew: (message: Message) => boolean }

export function MessageTable({ messages, isNew }: Props) {
  const { table } = say
  return (
    <table class="messages" aria-label={table.label}>
      <thead>
        <tr>
          <th scope="col">{table.recipient}</th>
          <th scope="col">{table.status}</th>
          <th scope="col" class="is-wide">
            {table.agent}
          </th>
          <th scope="col" class="is-wide">
            {table.reference}
          </th>
          <th scope="col" class="is-wide">
            {table.accepted}
          </th>
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
  const { account } = useFrame()
  const { messageId, recipient, agentId, clientReferenceId, acceptedAt, test, campaignId } = message
  const why = whyOf(message)
  return (
    <tr class={isNew ? 'is-new' : ''}>
      <td>
        <a
          class={`row-link ${recipient.startsWith('+') ? 'is-number' : ''}`}
          href={linkTo({ accountId: account.accountId, path: ['messages', messageId] })}
        >
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

type Reasons = Record<string, { short: string }>

/** Why a message failed, or its SMS did. */
function whyOf({ failure, smsFallback }: Message): string | undefined {
  const { failures, fallback, smsFailures }: Record<'failures' | 'fallback' | 'smsFailures', Reasons> = words.timeline
  const { status, reason = '' } = smsFallback ?? {}
  const sms = status === 'FAILED' ? smsFailures[reason]?.short : status === 'SKIPPED' ? fallback[reason]?.short : undefined
  const rcs = failure === undefined ? undefined : (failures[failure.reason]?.short ?? failure.reason)
  return [...new Set([rcs, sms])].filter(Boolean).join('; ')
}
