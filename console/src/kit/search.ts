import { useLayoutEffect, useState } from 'preact/hooks'
import { filter, type Place } from '../app/place.ts'

/** What a person types to search for. `find` puts it into the address, as the filter of this name. */
export function useSearch(place: Place, name: string) {
  const found = place.query.get(name) ?? ''
  const [text, setText] = useState(found)
  // The address may change by a link, or by the browser's back button.
  useLayoutEffect(() => setText(found), [found])
  const find = (event: Event) => {
    event.preventDefault()
    filter(place, { [name]: text.trim() })
  }
  return { text, setText, find }
}
