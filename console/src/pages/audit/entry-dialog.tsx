import { linkWith, type Place } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { Copy } from '../../kit/controls.tsx'
import { Dialog } from '../../kit/dialog.tsx'
import { Fact } from '../../kit/display.tsx'
import * as say from '../../words/en-audit.ts'
import { exactTimeOf } from '../../words/numbers.ts'
import { nameOfAccount } from '../people/person.ts'
import { changesOf, type Entry, type FieldChange, noFilters } from './entry.ts'

type Props = { entry: Entry; place: Place; onClose: () => void }

/** One change: what was before and after, by whom, and the request that made it. */
export function EntryDialog({ entry, place, onClose }: Props) {
  const changes = changesOf(entry)
  return (
    <Dialog title={say.action(entry.action)} onClose={onClose}>
      <Facts entry={entry} place={place} onClose={onClose} />
      {changes.length > 0 && <Changes changes={changes} />}
    </Dialog>
  )
}

/** The facts that the entry has. Some lead to all entries with the same one. */
function Facts({ entry, place, onClose }: Props) {
  const { accounts } = useFrame()
  const { entryId, at, actor, address, requestId, accountId, action, subject } = entry
  const facts = {
    at: exactTimeOf(at),
    actor: actor.name,
    kind: say.kinds[actor.kind],
    address,
    account: accountId && `${nameOfAccount(accounts, accountId)} (${accountId})`,
    subject,
    action,
    request: requestId,
    entry: String(entryId),
  }
  const names = Object.keys(facts) as (keyof typeof facts)[]
  return (
    <dl class="facts audit-facts">
      {names.map((name) => {
        const text = facts[name]
        const hasFilter = name === 'actor' || name === 'action' || name === 'subject'
        return (
          text && (
            <Fact name={say.facts[name]}>
              <Copy text={text} />{' '}
              {hasFilter && (
                <a href={linkWith(place, { ...noFilters, [name]: text })} aria-label={say.allOf(say.facts[name])} onClick={onClose}>
                  {say.all}
                </a>
              )}
            </Fact>
          )
        )
      })}
    </dl>
  )
}

function Changes({ changes }: { changes: FieldChange[] }) {
  return (
    <table class="audit-changes">
      <caption class="sr">{say.facts.change}</caption>
      <thead>
        <tr>
          <th scope="col">{say.field}</th>
          <th scope="col">{say.before}</th>
          <th scope="col">{say.after}</th>
        </tr>
      </thead>
      <tbody>
        {changes.map(({ name, before, after }) => (
          <tr key={name}>
            <th scope="row">{name || say.facts.change}</th>
            <td class="audit-before">
              <Value of={before} />
            </td>
            <td class="audit-after">
              <Value of={after} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Value({ of: value }: { of: unknown }) {
  if (value === undefined) return <span class="soft">–</span>
  return <pre>{typeof value === 'string' ? value : JSON.stringify(value, null, 2)}</pre>
}
