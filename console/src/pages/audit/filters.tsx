import { useLayoutEffect, useState } from 'preact/hooks'
import { filter, type Place } from '../../app/place.ts'
import { Button, TextField } from '../../kit/controls.tsx'
import { TimeField } from '../../kit/time-field.tsx'
import * as say from '../../words/en-audit.ts'
import * as paletteWords from '../../words/en-palette.ts'
import { type Filters, noFilters, operationOf } from './entry.ts'

/** The filters of the log, which is searched for exactly these texts. */
export function AuditFilters({ place, filters }: { place: Place; filters: Filters }) {
  const [given, setGiven] = useState(textsOf(filters))
  const { actor, action, subject } = filters
  // The address may change by a link, or by the browser's back button.
  useLayoutEffect(() => setGiven(textsOf(filters)), [actor, action, subject])
  const find = (event: Event) => {
    event.preventDefault()
    filter(place, { actor: given.actor.trim(), action: operationOf(given.action), subject: given.subject.trim() })
  }
  return (
    <search class="filters card" aria-label={paletteWords.label}>
      <form class="audit-filters" onSubmit={find}>
        {(['actor', 'action', 'subject'] as const).map((name) => (
          <TextField
            label={say.facts[name]}
            placeholder={say.examples[name]}
            autocomplete="off"
            value={given[name]}
            onInput={(text) => setGiven({ ...given, [name]: text })}
          />
        ))}
        <Button icon="search" type="submit">
          {paletteWords.label}
        </Button>
      </form>
      {(['from', 'to'] as const).map((name) => (
        <TimeField label={say.times[name]} value={filters[name]} onChange={(time) => filter(place, { [name]: time })} />
      ))}
      {Object.keys(filters).length > 0 && (
        <Button icon="x" kind="quiet" onClick={() => filter(place, noFilters)}>
          {say.clear}
        </Button>
      )}
    </search>
  )
}

const textsOf = ({ actor = '', action = '', subject = '' }: Filters) => ({ actor, action: say.action(action), subject })
