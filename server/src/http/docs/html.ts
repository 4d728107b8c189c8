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

/** Renders the Markdown that our descriptions use: paragraphs, lists, headings, fenced and inline code, bold. Other syntax stays as text. */
export function markdown(text: string | undefined): Html | undefined {
  if (text === undefined || text.trim() === '') return undefined
  // Every second piece is the text between two fences.
  return html`${text.split(/^```\w*\n([\s\S]*?)^```$/m).map((piece, index) => (index % 2 === 1 ? codeBlock(piece) : blocks(piece)))}`
}

function blocks(text: string): Html[] {
  return text
    .split(/\n\s*\n/)
    .map((block) => block.trim())
    .filter((block) => block !== '')
    .map((block) => {
      if (block.startsWith('- '))
        return html`<ul>${block
          .split(/^- /m)
          .slice(1)
          .map((item) => html`<li>${inline(item)}</li>`)}</ul>`
      if (/^#+ /.test(block)) return html`<h3>${inline(block.replace(/^#+ /, ''))}</h3>`
      return html`<p>${inline(block)}</p>`
    })
}

function inline(text: string): Part {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((piece) => {
    if (/^`.+`$/s.test(piece)) return html`<code>${piece.slice(1, -1)}</code>`
    return /^\*\*.+\*\*$/s.test(piece) ? html`<strong>${piece.slice(2, -2)}</strong>` : piece
  })
}

function codeBlock(text: string): Html {
  return html`<pre tabindex="0"><code>${text}</code></pre>`
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
