import { type Fields, isFilled } from './untrusted.ts'

/**
 * The text of a contact. RCS has no contact message, so it is sent as a text with a button to call each number. Accepts fields of any type,
 * because it also runs on content that is not validated yet.
 */
export function contactText(content: unknown, { name, organization, phoneNumbers, email, url }: Fields): string {
  const lines = [name, organization, ...(Array.isArray(phoneNumbers) ? phoneNumbers : []), email, url].filter(isFilled)
  return [content, lines.join('\n')].filter(isFilled).join('\n\n')
}
