import { linkTo } from '../../app/place.ts'
import { Icon } from '../../kit/icon.tsx'
import * as accountWords from '../../words/en-accounts.ts'
import type { Trouble } from './troubles.ts'

/** What needs a look in an account, with links to the pages that show it. */
export function TroubleList({ troubles, of }: { troubles: Trouble[]; of: number }) {
  if (troubles.length === 0) return <span class="soft">{accountWords.fine}</span>
  return (
    <ul class="trouble-list">
      {troubles.map(({ tone, text, page, query = {} }) => (
        <li class={`tone-${tone}`}>
          <Icon name={tone === 'bad' ? 'circle-x' : 'triangle-alert'} size={14} />
          {page === undefined ? <span>{text}</span> : <a href={linkTo({ accountId: of, path: [page], query })}>{text}</a>}
        </li>
      ))}
    </ul>
  )
}
