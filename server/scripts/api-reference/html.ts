const RAW = Symbol('html')

/** Text that is HTML already. JSON can't hold a symbol, so no value of a document can pass for HTML. */
export type Html = { readonly [RAW]: string }
export type Part = Html | string | number | undefined | false | readonly Part[]

/** Escapes every interpolated value, unless this function made it. */
export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return { [RAW]: strings.reduce((before, text, index) => before + toMarkup(parts[index - 1]) + text) }
}

export function toMarkup(part: Part): string {
  if (part === undefined || part === false) return ''
  if (typeof part === 'string' || typeof part === 'number') return escapeHtml(String(part))
  return RAW in part ? part[RAW] : part.map(toMarkup).join('')
}

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '')
}

export function join(parts: Part[], separator: Part): Html {
  return html`${parts.map((part, index) => (index === 0 ? part : [separator, part]))}`
}

/** Renders the Markdown that the descriptions use: paragraphs and inline code. Other syntax stays as text. */
export function markdown(text: string | undefined): Html {
  const paragraphs = text?.split(/\n\s*\n/) ?? []
  return html`${paragraphs.map((paragraph) => html`<p>${paragraph.split(/`([^`]+)`/).map(textOrCode)}</p>`)}`
}

/** Every second piece was between two backticks. */
function textOrCode(piece: string, index: number): Part {
  return index % 2 === 1 ? html`<code>${piece}</code>` : piece
}

const JSON_TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** Marks the names, strings and other values of JSON text, so that the stylesheet can colour them. */
export function colouredJson(text: string): Html {
  const parts: Part[] = []
  let done = 0
  for (const { 0: token, 1: quoted, 2: colon, index } of text.matchAll(JSON_TOKEN)) {
    parts.push(text.slice(done, index))
    if (colon !== undefined) parts.push(html`<span class="json-name">${quoted}</span>${colon}`)
    else parts.push(html`<span class="${quoted === undefined ? 'json-value' : 'json-text'}">${token}</span>`)
    done = index + token.length
  }
  return html`${parts}${text.slice(done)}`
}
