import { type Fields, isFilled } from './unchecked.ts'

/**
 * The text of a contact: RCS has no such message, so it is sent as a text, with a button to call each number. Takes fields of any type, so
 * that content can be judged before all of it is known to be right.
 */
export function contactText(content: unknown, { name, organization, phoneNumbers, email, url }: Fields): string {
  const lines = [name, organization, ...(Array.isArray(phoneNumbers) ? phoneNumbers : []), email, url].filter(isFilled)
  return [content, lines.join('\n')].filter(isFilled).join('\n\n')
}
