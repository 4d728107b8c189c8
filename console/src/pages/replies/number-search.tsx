import type { ComponentChildren } from 'preact'
import type { Place } from '../../app/place.ts'
import { Button, TextField } from '../../kit/controls.tsx'
import { useSearch } from '../../kit/search.ts'
import * as say from '../../words/en-replies.ts'

/** Puts a number into the address. `children`: the other filters. */
export function NumberSearch({ place, children }: { place: Place; children: ComponentChildren }) {
  const { text, setText, find } = useSearch(place, 'phone')
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
