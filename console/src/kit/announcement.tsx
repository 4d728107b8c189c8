import { useEffect, useRef, useState } from 'preact/hooks'
import { useThrottled } from '../app/resource.ts'

const EVERY_MS = 5_000

/** Announces a text to screen readers when it changes, at most once in five seconds: of several changes, only the last is announced. */
export function Announcement({ text }: { text: string }) {
  const [announced, setAnnounced] = useState('')
  const announce = useThrottled(() => setAnnounced(text), EVERY_MS)
  const last = useRef(text)
  useEffect(() => {
    if (text !== last.current) announce()
    last.current = text
  }, [text, announce])
  return (
    <p class="sr" role="status">
      {announced}
    </p>
  )
}
