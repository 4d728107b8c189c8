import { useState } from 'preact/hooks'
import type { Agent } from '../../app/agents.ts'
import { useFrame } from '../../app/session.tsx'
import { type Draft, EMPTY, forget, type Kept, keep, keptOf } from './draft.ts'

/**
 * The draft of the account. One key for one message: a second click, or a repeated request, sends nothing twice. A changed draft is another
 * message.
 */
export function useDraft(agents: Agent[], linked: string) {
  const { account, session } = useFrame()
  const owner = `${session.personId}-${account.accountId}`
  const [{ draft, key }, setKept] = useState(() => draftFor(linked, agents, keptOf(owner)))
  const change = (more: Partial<Draft>) => {
    const kept = { draft: { ...draft, ...more }, key: crypto.randomUUID(), linked }
    setKept(kept)
    keep(owner, kept)
  }
  // The same draft and key after a reload, even if nothing was changed since the page was opened.
  const keepForRetry = () => keep(owner, { draft, key, linked })
  const wasSent = () => {
    forget(owner, key)
    setKept((last) => (last.key === key ? { ...last, key: crypto.randomUUID() } : last))
  }
  return { draft, key, change, keepForRetry, wasSent }
}

/** The recipient of a link replaces that of the draft, unless the draft was written on the page of the same link. */
function draftFor(linked: string, agents: Agent[], kept: Kept | undefined): Kept {
  const agentId = agents[0]?.agentId as string
  const fresh = { draft: { ...EMPTY, agentId, recipient: linked }, key: crypto.randomUUID(), linked }
  if (kept === undefined) return fresh
  const draft = {
    ...fresh.draft,
    ...kept.draft,
    ...(!agents.some((agent) => agent.agentId === kept.draft.agentId) && { agentId }),
    ...(linked !== '' && linked !== kept.linked && { recipient: linked }),
  }
  const isSame = draft.agentId === kept.draft.agentId && draft.recipient === kept.draft.recipient
  return { draft, key: isSame ? kept.key : fresh.key, linked }
}
