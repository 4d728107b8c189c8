import { linkHere } from '../../app/place.ts'
import { Copy } from '../../kit/controls.tsx'
import { Ago, Facts } from '../../kit/display.tsx'
import type { Message } from '../../timeline/types.ts'
import * as say from '../../words/en-messages.ts'
import { windowOf } from '../../words/en-timeline.ts'

/** The ids of a message, to copy and to follow. */
export function MessageFacts({ message }: { message: Message }) {
  const { recipient, clientReferenceId, agentId, campaignId, triggeredBy, scheduledAt, deliveryWindow, smsFallback } = message
  const linked = (id: string, query?: Record<string, string>) => (
    <>
      <a href={linkHere(query ? ['messages'] : ['messages', id], query)}>{id}</a> <Copy text={id} isIcon />
    </>
  )
  return (
    <Facts
      facts={[
        [say.recipient, <Copy text={recipient} />],
        [say.reference, clientReferenceId && <Copy text={clientReferenceId} />],
        [say.agent, linked(agentId, { agentId })],
        [say.campaign, campaignId && linked(campaignId, { campaignId })],
        [say.triggeredBy, triggeredBy && linked(triggeredBy)],
        [say.accepted, <Ago at={message.acceptedAt} />],
        [say.scheduled, scheduledAt && <Ago at={scheduledAt} />],
        [say.deliveryWindow, deliveryWindow && windowOf(deliveryWindow)],
        [say.expires, <Ago at={message.expiresAt} />],
        ['SMS', smsFallback && say.segments(smsFallback.segments)],
        [say.smsLabel, smsFallback?.campaign],
        [say.kind, message.basic ? 'RCS Basic' : undefined],
      ]}
    />
  )
}
