const LINK = /https?:\/\/\S+/g
const MARKS = new Set('.,;:!?…\'"’”»>]}')

/** Divides a text: its parts with an odd index are links. The punctuation after a link is not a part of it. */
export function splitLinks(text: string): string[] {
  const parts: string[] = []
  let end = 0
  for (const { 0: found, index } of text.matchAll(LINK)) {
    const link = withoutMarks(found)
    parts.push(text.slice(end, index), link)
    end = index + link.length
  }
  return [...parts, text.slice(end)]
}

/** The address of the only link of a text, if the text ends with it. */
export function trailingLink(text: string): string | undefined {
  const [, link, rest, ...others] = splitLinks(text)
  return rest?.trim() === '' && others.length === 0 ? link : undefined
}

/** A closing bracket belongs to the link if the link also opens it. */
function withoutMarks(link: string): string {
  const last = link.at(-1) ?? ''
  const isMark = last === ')' ? link.split(')').length > link.split('(').length : MARKS.has(last)
  return isMark ? withoutMarks(link.slice(0, -1)) : link
}
