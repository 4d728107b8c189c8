/** What a person has given for a message so far. */
export type Draft = {
  agentId: string
  recipient: string
  kind: 'text' | 'template' | 'json'
  text: string
  templateId: string
  /** A whole content object, as the API takes it. */
  json: string
  hasSms: boolean
  sender: string
  smsText: string
  reference: string
}

export const EMPTY: Draft = {
  agentId: '',
  recipient: '',
  kind: 'text',
  text: '',
  templateId: '',
  json: '',
  hasSms: false,
  sender: 'Herald',
  smsText: '',
  reference: '',
}

/** `key`: the Idempotency-Key. `linked`: the recipient in the address of the page. */
export type Kept = { draft: Draft; key: string; linked: string }

const PREFIX = 'herald-draft-'

/**
 * A draft is kept in the tab while a person reloads it or looks at other pages. It is kept with its key, so that a message whose response was
 * lost is sent once. `owner`: another person who signs in does not see it.
 */
export function keep(owner: string, kept: Kept): void {
  try {
    sessionStorage.setItem(PREFIX + owner, JSON.stringify(kept))
  } catch {
    // The tab has no space for content this long.
    sessionStorage.removeItem(PREFIX + owner)
  }
}

export function keptOf(owner: string): Kept | undefined {
  const text = sessionStorage.getItem(PREFIX + owner)
  return text === null ? undefined : (JSON.parse(text) as Kept)
}

/** Forgets the draft that was sent with this key, but not what was written since. */
export function forget(owner: string, key: string): void {
  if (keptOf(owner)?.key === key) sessionStorage.removeItem(PREFIX + owner)
}

/** Other programs behind the same proxy may keep something, too. */
export function forgetAll(): void {
  for (const name of Object.keys(sessionStorage)) {
    if (name.startsWith(PREFIX)) sessionStorage.removeItem(name)
  }
}

/** The body of the request for a draft. Undefined: the draft has no template, or its JSON is wrong. */
export function bodyOf(draft: Draft): (Record<string, unknown> & { recipient: string }) | undefined {
  const message = messageOf(draft)
  if (message === undefined) return undefined
  const { agentId, recipient, hasSms, sender, smsText, reference } = draft
  return {
    agentId,
    recipient: recipient.replace(/[\s()-]/g, ''),
    message,
    ...(reference !== '' && { clientReferenceId: reference }),
    ...(hasSms && {
      smsFallback: { planParams: { sender, smsShipmentType: 1 }, smsMessagesPlan: [{ content: smsText, multipart: true }] },
    }),
  }
}

function messageOf({ kind, text, templateId, json }: Draft): object | undefined {
  if (kind === 'text') return { inline: { type: 'MESSAGE', content: text } }
  if (kind === 'template') return templateId === '' ? undefined : { templateId: Number(templateId) }
  try {
    return { inline: JSON.parse(json) }
  } catch {
    return undefined
  }
}
