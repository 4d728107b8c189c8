import { withoutDiacritics } from './diacritics.ts'
import { countSeptets } from './gsm7.ts'
import type { SmsEncoding } from './segments.ts'

// A link ends before white space, angle brackets, a double quote, an emoji (right after a link, it would become part of the host name), an
// invisible character, or a comma or semicolon followed by another link. It does not start inside a word, which would be part of the scheme.
// Each step looks ahead at most nine characters and never backtracks, so the time is linear in the text.
const LINK = /(?<![a-z0-9])https?:\/\/(?:(?![,;]https?:\/\/)[^\s<>"\p{Cc}\p{Cf}\p{Extended_Pictographic}\p{Regional_Indicator}])+/giu
// Punctuation that ends a sentence or a quotation, not the link. Outside ASCII that is all punctuation: ”, », …, the Chinese full stop.
const TRAILING = /[.,;:!?'"[\p{P}--\p{ASCII}]]/v
const OPENING = new Map([
  [')', '('],
  [']', '['],
  ['}', '{'],
])
const MAX_LINK_LENGTH = 2048

/** The http and https links of a text, as a reader sees them, in their order. */
export function linksIn(content: string): string[] {
  return findLinks(content).map(({ link }) => link)
}

type SmsText = { content: string; diacriticalSigns?: boolean; urlShortening?: boolean }

/**
 * Returns the text as it is sent. Calls `shortLink` for each link with its index in `linksIn`; a repeated link counts as two. Links that are not
 * shortened are kept exactly: without its diacritics a link would lead elsewhere.
 */
export function composeText(
  { content, diacriticalSigns = false, urlShortening = false }: SmsText,
  shortLink: (index: number) => string,
): string {
  const folded = (prose: string) => (diacriticalSigns ? prose : withoutDiacritics(prose))
  let text = ''
  let from = 0
  for (const [index, { at, link }] of findLinks(content).entries()) {
    text += folded(content.slice(from, at)) + (urlShortening ? shortLink(index) : link)
    from = at + link.length
  }
  return text + folded(content.slice(from))
}

function findLinks(content: string): { at: number; link: string }[] {
  return Array.from(content.matchAll(LINK), ({ 0: run, index: at }) => ({ at, link: withoutTrailing(run) })).filter(
    ({ link }) => link.length <= MAX_LINK_LENGTH && URL.canParse(link),
  )
}

/** Removes punctuation after the link, and a closing bracket that was opened before it. */
function withoutTrailing(run: string): string {
  const counts = new Map<string, number>()
  const count = (character: string) => counts.get(character) ?? 0
  for (const character of run) counts.set(character, count(character) + 1)
  let end = run.length
  for (; end > 0; end -= 1) {
    const last = run.charAt(end - 1)
    const opening = OPENING.get(last)
    const isUnbalanced = opening !== undefined && count(last) > count(opening)
    if (!isUnbalanced && !TRAILING.test(last)) break
    counts.set(last, count(last) - 1)
  }
  return run.slice(0, end)
}

type SmsMode = 'AUTO' | 'GSM7' | 'UNICODE'

/** The encoding of a text; undefined if the mode is GSM-7 and the text does not fit it. */
export function encodingFor(mode: SmsMode, text: string): SmsEncoding | undefined {
  if (mode === 'UNICODE') return 'UCS2'
  if (countSeptets(text) !== undefined) return 'GSM7'
  return mode === 'AUTO' ? 'UCS2' : undefined
}

// An error lists this many characters. With all of them, it could be longer than the text.
const MAX_CHARACTERS_LISTED = 5

/** The first few characters of a text that GSM-7 does not have, each once, for an error message. */
export function nonGsm7Characters(text: string): string[] {
  const characters = new Set<string>()
  for (const character of text) {
    if (countSeptets(character) === undefined) characters.add(character)
    if (characters.size === MAX_CHARACTERS_LISTED) break
  }
  return [...characters]
}
