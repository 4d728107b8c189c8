import { Announcement } from '../../kit/announcement.tsx'
import { Icon } from '../../kit/icon.tsx'
import { pages } from '../../words/en.ts'
import * as say from '../../words/en-health.ts'
import type { Trouble } from './troubles.ts'

const ICONS = { good: 'check', warn: 'triangle-alert', bad: 'circle-x' } as const

/** The sentence that says whether everything works, or what is wrong and what to do about it. */
export function Verdict({ troubles }: { troubles: Trouble[] }) {
  const [first, second] = troubles
  const tone = first?.tone ?? 'good'
  return (
    <section class={`card verdict tone-${tone}`} aria-label={pages.health}>
      <Icon name={ICONS[tone]} size={26} />
      <div>
        <h2>{titleOf(troubles)}</h2>
        {second === undefined && <p>{first?.advice}</p>}
        {second !== undefined && (
          <ul>
            {troubles.map((trouble) => (
              <li class={`tone-${trouble.tone}`}>
                <Icon name={ICONS[trouble.tone]} size={15} />
                <p>
                  <b>{trouble.text}</b> {trouble.advice}
                </p>
              </li>
            ))}
          </ul>
        )}
      </div>
      <Announcement text={troubles.map(({ text }) => text).join(' ') || say.healthy} />
    </section>
  )
}

function titleOf(troubles: Trouble[]): string {
  if (troubles.length < 2) return troubles[0]?.text ?? say.healthy
  const wrong = troubles.filter(({ tone }) => tone === 'bad').length
  return wrong > 0 ? say.ill(wrong) : say.warned(troubles.length)
}
