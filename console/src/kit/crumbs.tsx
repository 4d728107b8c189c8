import type { ComponentChildren } from 'preact'
import { linkHere } from '../app/place.ts'
import { pages } from '../words/en.ts'
import * as say from '../words/en-frame.ts'
import { Copy } from './controls.tsx'
import { Icon } from './icon.tsx'

type Props = { page: keyof typeof pages; id?: string; children?: ComponentChildren }

/** Leads from one thing back to its list. `id`: of the thing, to copy; or `children`: its name. */
export function Crumbs({ page, id, children }: Props) {
  return (
    <nav class="crumbs" aria-label={say.crumbs}>
      <a href={linkHere([page])}>{pages[page]}</a> <Icon name="chevron-right" size={13} />{' '}
      {id === undefined ? <span aria-current="page">{children}</span> : <Copy text={id} />}
    </nav>
  )
}
