import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { filter, type Place } from '../../app/place.ts'
import { Button, TextField } from '../../kit/controls.tsx'
import * as say from '../../words/en-replies.ts'

/** Puts a number into the address. `children`: the other filters. */
export function NumberSearch({ place, children }: { place: Place; children: ComponentChildren }) {
  const phone = place.query.get('phone') ?? ''
  const [text, setText] = useState(phone)
  // The address may change by a link, or by the browser's back button.
  useEffect(() => setText(phone), [phone])
  const find = (event: Event) => {
    event.preventDefault()
    filter(place, { phone: text.trim() })
  }
  return (
    <search class="filters card">
      <form class="filters-search" onSubmit={find}>
        <TextField label={say.number} value={text} onInput={setText} placeholder="+48500100200" autocomplete="off" />
        <Button icon="search" type="submit">
          {say.find}
        </Button>
      </form>
      {children}
    </search>
  )
}
