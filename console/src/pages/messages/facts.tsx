import { linkTo } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { Copy } from '../../kit/controls.tsx'
import { Ago, Fact } from '../../kit/display.tsx'
import type { Message } from '../../timeline/types.ts'
import { words } from '../../words/words.ts'

const say = words.messages.facts

/** The ids of a message, to copy and to follow. */
export function MessageFacts({ message }: { message: Message }) {
  const { messageId, recipient, clientReferenceId, agentId, campaignId, triggeredBy, acceptedAt, expiresAt, smsFallback } = message
  const { accountId } = useFrame().account
  const list = (query: Record<string, string>) => linkTo({ accountId, path: ['messages'], query })
  const kinds = [...(message.test ? [say.test] : []), ...(message.basic ? [say.basic] : [])].join(', ')
  return (
    <dl class="facts">
      <Fact name={say.message}>
        <Copy text={messageId} />
      </Fact>
      <Fact name={say.recipient}>
        <Copy text={recipient} />
      </Fact>
      {clientReferenceId !== undefined && (
        <Fact name={say.reference}>
          <Copy text={clientReferenceId} />
        </Fact>
      )}
      <Fact name={say.agent}>
        <a href={list({ agentId })}>{agentId}</a> <Copy text={agentId} isIcon />
      </Fact>
      {campaignId !== undefined && (
        <Fact name={say.campaign}>
          <Copy text={campaignId} /> <a href={list({ campaignId })}>{words.pages.messages}</a>
        </Fact>
      )}
      {triggeredBy !== undefined && (
        <Fact name={say.triggeredBy}>
          <a href={linkTo({ accountId, path: ['messages', triggeredBy] })}>{triggeredBy}</a> <Copy text={triggeredBy} isIcon />
        </Fact>
      )}
      <Fact name={say.accepted}>
        <Ago at={acceptedAt} />
      </Fact>
      <Fact name={say.expires}>
        <Ago at={expiresAt} />
      </Fact>
      {smsFallback !== undefined && <Fact name={say.sms}>{say.segments(smsFallback.segments)}</Fact>}
      {smsFallback?.campaign !== undefined && <Fact name={say.smsLabel}>{smsFallback.campaign}</Fact>}
      {kinds !== '' && <Fact name={say.kind}>{kinds}</Fact>}
    </dl>
  )
}
