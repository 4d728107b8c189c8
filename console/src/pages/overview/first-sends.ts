import { useRef, useState } from 'preact/hooks'
import { sendingAgents, useAgents } from '../../app/agents.ts'
import { type ApiProblem, post } from '../../app/api.ts'
import { useFrame, whyNotSend } from '../../app/session.tsx'
import { words } from '../../words/words.ts'
import { SAMPLES } from '../send/samples.ts'

/** A phone of the simulated network that gets and reads everything, and one without RCS. */
export const FIRST_PHONE = '+48500100200'
const PHONE_WITHOUT_RCS = '+48500100202'

const FIRST = { recipient: FIRST_PHONE, message: { inline: SAMPLES.card } }
const FALLBACK = {
  recipient: PHONE_WITHOUT_RCS,
  message: { inline: SAMPLES.card },
  smsFallback: {
    planParams: { sender: 'Herald', smsShipmentType: 1 },
    smsMessagesPlan: [{ content: 'Your order is on its way. It should be with you tomorrow between 9 and 12.' }],
  },
}

/**
 * Sends the messages of the first steps by these agents, which are in the simulated network: in a real network, the numbers may belong to
 * somebody. `whyNot`: why nothing can be sent, if so.
 */
export function useFirstSends(agentIds: string[]) {
  const { account } = useFrame()
  const { accountId } = account
  const { agents, problem: agentsProblem, reload } = useAgents()
  const agent = sendingAgents(agents ?? []).find(({ agentId }) => agentIds.includes(agentId))
  const noAgent = agents !== undefined && agent === undefined ? words.overview.steps.noAgent : undefined
  const [problem, setProblem] = useState<ApiProblem>()
  const [busy, setBusy] = useState<'first' | 'fallback'>()
  // One key for one message: if a response is lost, the next attempt sends nothing twice.
  const keys = useRef({ first: crypto.randomUUID(), fallback: crypto.randomUUID() })
  const send = async (which: 'first' | 'fallback'): Promise<string | undefined> => {
    setBusy(which)
    setProblem(undefined)
    const body = { agentId: agent?.agentId, ...(which === 'first' ? FIRST : FALLBACK) }
    const headers = { 'idempotency-key': keys.current[which] }
    const messageId = await post<{ messageId: string }>(`/accounts/${accountId}/messages`, body, headers).then(
      (sent) => {
        keys.current[which] = crypto.randomUUID()
        return sent.messageId
      },
      (error: ApiProblem) => {
        setProblem(error)
        return undefined
      },
    )
    setBusy(undefined)
    return messageId
  }
  return { whyNot: whyNotSend(account) ?? noAgent, isReady: agent !== undefined, busy, problem, agentsProblem, reload, send }
}
