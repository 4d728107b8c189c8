import { useState } from 'preact/hooks'
import type { Agent } from '../../app/agents.ts'
import { draftOf, forgetDraft, keepDraft } from '../../app/drafts.ts'
import { useFrame } from '../../app/session.tsx'
import { givenValues, type Values } from '../templates/variables.tsx'
import { CARD } from './samples.ts'

/** What a person has given for a message so far. `json`: a whole content object, as the API takes it. */
export type Draft = typeof EMPTY

const EMPTY = {
  agentId: '',
  recipient: '',
  kind: 'text' as 'text' | 'template' | 'json',
  text: '',
  templateId: '',
  /** The values of variables, by their names. */
  variables: {} as Values,
  json: JSON.stringify(CARD, undefined, 2),
  hasSms: false,
  sender: 'Herald',
  smsText: '',
  reference: '',
}

/** `key`: the Idempotency-Key. `linked`: the recipient in the address of the page. */
type Kept = { draft: Draft; key: string; linked: string }

/**
 * The draft of the account, kept with its key, so that a message whose response was lost is sent once. One key for one message: a second click,
 * or a repeated request, sends nothing twice. A changed draft is another message.
 */
export function useDraft(agents: Agent[], linked: string) {
  const { account, session } = useFrame()
  const owner = `${session.personId}-${account.accountId}`
  const [{ draft, key }, setKept] = useState(() => draftFor(linked, agents, draftOf<Kept>(owner)))
  const change = (more: Partial<Draft>) => {
    const kept = { draft: { ...draft, ...more }, key: crypto.randomUUID(), linked }
    setKept(kept)
    keepDraft(owner, kept)
  }
  // The same draft and key after a reload, even if nothing was changed since the page was opened.
  const keepForRetry = () => keepDraft(owner, { draft, key, linked })
  /** What was written since the message was sent stays. */
  const wasSent = () => {
    if (draftOf<Kept>(owner)?.key === key) forgetDraft(owner)
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

/** The body of the request for a draft. Undefined: the draft has no template, or its JSON is wrong. */
export function bodyOf(draft: Draft) {
  const message = messageOf(draft)
  if (message === undefined) return undefined
  const { agentId, recipient, variables, hasSms, sender, smsText, reference } = draft
  return {
    agentId,
    recipient: recipient.replace(/[\s()-]/g, ''),
    message,
    ...givenValues(Object.keys(variables), variables),
    ...(reference !== '' && { clientReferenceId: reference }),
    ...(hasSms && {
      smsFallback: { planParams: { sender, smsShipmentType: 1 }, smsMessagesPlan: [{ content: smsText, multipart: true }] },
    }),
  }
}

export function messageOf({ kind, text, templateId, json }: Draft): { inline: unknown } | { templateId: number } | undefined {
  if (kind === 'text') return { inline: { type: 'MESSAGE', content: text } }
  if (kind === 'template') return templateId === '' ? undefined : { templateId: Number(templateId) }
  try {
    return { inline: JSON.parse(json) }
  } catch {
    return undefined
  }
}
