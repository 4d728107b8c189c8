import type { Place } from '../../app/place.ts'
import { ComposerPage } from './composer.tsx'
import { TemplateList } from './list.tsx'
import '../send/send.css'
import './templates.css'

/** The list of templates; or the composer, for a new one at `templates/new`, or for the one whose id the address has. */
export function TemplatesPage({ place }: { place: Place }) {
  const [, shown] = place.path
  if (shown === undefined) return <TemplateList place={place} />
  return <ComposerPage key={shown} place={place} id={shown} />
}
