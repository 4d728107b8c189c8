import { useCallback, useState } from 'preact/hooks'

/** A page of a list of the API. */
export type Page<Item> = { items: Item[]; nextCursor: string | null }

/** The path of a page of a list, whose filters may stand behind a question mark. */
export function withCursor(path: string, cursor: string | undefined, limit: number): string {
  const [base, query] = path.split('?')
  const params = new URLSearchParams(query)
  params.set('limit', String(limit))
  if (cursor !== undefined) params.set('cursor', cursor)
  return `${base}?${params}`
}

/** The cursors of the pages that are known so far. The first page has none. */
type Cursors = (string | undefined)[]

/** Which pages of a list there are, as far as somebody has looked. Every page that is read again says where the next one begins now. */
export function useCursors() {
  const [cursors, setCursors] = useState<Cursors>([undefined])
  const note = useCallback((index: number, nextCursor: string | null) => {
    setCursors((now) => {
      if (nextCursor === null) return now.length === index + 1 ? now : now.slice(0, index + 1)
      return now[index + 1] === nextCursor ? now : now.toSpliced(index + 1, 1, nextCursor)
    })
  }, [])
  return { cursors, note }
}
