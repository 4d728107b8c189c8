import { useEffect, useState } from 'preact/hooks'

/** Where the person is: `#/1/messages?status=FAILED` is the page `messages` of account 1. All that a page can show is in it, so links can be shared. */
export type Place = {
  accountId: number | undefined
  /** The page and what it shows, such as `['messages', '0198c0de-…']`. */
  path: string[]
  query: URLSearchParams
}

export function placeOf(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?')
  const parts = path
    .split('/')
    .filter((part) => part !== '')
    .map(decoded)
  const isOfAccount = /^[1-9]\d*$/.test(parts[0] ?? '')
  return {
    accountId: isOfAccount ? Number(parts[0]) : undefined,
    path: isOfAccount ? parts.slice(1) : parts,
    query: new URLSearchParams(query),
  }
}

/** A part of an address that somebody typed may be no encoding at all. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

export type Target = { accountId?: number | undefined; path: string[]; query?: Record<string, string | undefined> }

/** The address of a place. A filter that is empty is not part of it. */
export function linkTo({ accountId, path, query = {} }: Target): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '')
  const search = new URLSearchParams(given).toString()
  const parts = [...(accountId === undefined ? [] : [String(accountId)]), ...path.map(encodeURIComponent)]
  return `#/${parts.join('/')}${search === '' ? '' : `?${search}`}`
}

/** The address of a place in the account that the person looks at. */
export const linkHere = (path: string[], query: Target['query'] = {}) =>
  linkTo({ accountId: placeOf(location.hash).accountId, path, query })

export function go(target: Target): void {
  location.hash = linkTo(target)
}

/** The address of a place with other filters. */
export const linkWith = (place: Place, changes: Record<string, string | undefined> = {}) =>
  linkTo({ ...place, query: { ...Object.fromEntries(place.query), ...changes } })

/**
 * Changes filters of the present place. The browser's back button skips the steps in between. The page changes at once, and not only when the
 * browser reports the new address: by then the person may have typed more, and that text would be lost.
 */
export function filter(place: Place, changes: Record<string, string | undefined>): void {
  history.replaceState(null, '', linkWith(place, changes))
  dispatchEvent(new HashChangeEvent('hashchange'))
}

export function usePlace(): Place {
  const [hash, setHash] = useState(location.hash)
  useEffect(() => {
    const follow = () => setHash(location.hash)
    addEventListener('hashchange', follow)
    return () => removeEventListener('hashchange', follow)
  }, [])
  return placeOf(hash)
}
