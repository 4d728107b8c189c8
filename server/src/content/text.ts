import { type Fields, isFilled } from './unchecked.ts'

/**
 * The text of a contact: RCS has no such message, so it is sent as a text, with a button to call each number. Takes fields of any type, so
 * that content can be judged before all of it is known to be right.
 */
export function contactText(content: unknown, { name, organization, phoneNumbers, email, url }: Fields): string {
  const lines = [name, organization, ...(Array.isArray(phoneNumbers) ? phoneNumbers : []), email, url].filter(isFilled)
  return [content, lines.join('\n')].filter(isFilled).join('\n\n')
}

const SURROGATE_PAIR = /[\ud800-\udbff][\udc00-\udfff]/

/** In code points, as all limits are. */
export function lengthOf(text: string): number {
  // Most texts have none, which a search finds out many times faster than the count.
  if (!SURROGATE_PAIR.test(text)) return text.length
  let pairs = 0
  for (let index = 0; index < text.length; index += 1) {
    if ((text.charCodeAt(index) & 0xfc00) === 0xd800 && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00) pairs += 1
  }
  return text.length - pairs
}
