import type { RefObject } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'

/**
 * Keeps the focus in a part of a page. A button may end what it is for, and disappear; then the part gets the focus, so that a person with a
 * keyboard goes on from there, and not from the top of the page. The part needs `tabIndex={-1}`, and is rendered when its buttons change.
 */
export function useKeptFocus<Part extends HTMLElement>(): RefObject<Part | null> {
  const part = useRef<Part>(null)
  const isInside = useRef(false)
  useEffect(() => {
    const note = ({ target }: Event) => {
      isInside.current = part.current?.contains(target as Node) === true
    }
    // Somebody who clicks beside everything takes the focus away.
    const forget = () => {
      isInside.current = false
    }
    document.addEventListener('pointerdown', forget)
    document.addEventListener('focusin', note)
    return () => {
      document.removeEventListener('pointerdown', forget)
      document.removeEventListener('focusin', note)
    }
  }, [])
  // Before the browser handles another key.
  useLayoutEffect(() => {
    if (isInside.current && document.activeElement === document.body) part.current?.focus({ preventScroll: true })
  })
  return part
}
