import { Pill } from '../../kit/display.tsx'
import { Icon } from '../../kit/icon.tsx'
import { Meter } from '../../kit/meter.tsx'
import { Problem } from '../../kit/problem.tsx'
import * as say from '../../words/en-templates.ts'
import type { Facts, useCheck } from './use-check.ts'
import { type Values, VariableFields } from './variables.tsx'
import { whereOf } from './where.ts'

type Props = { result: ReturnType<typeof useCheck>; onlyFacts: boolean; samples: Values; onSamples: (samples: Values) => void }

/** What the check says: what is wrong, how much of each limit is used, what it costs, and what iPhones do differently. */
export function Checks({ result: { check, problem, isCurrent, retry }, onlyFacts, samples, onSamples }: Props) {
  const facts = check?.facts
  const wrong = check?.violations.length ?? 0
  return (
    <aside class="checks" aria-label={say.checkTitle} aria-busy={!isCurrent}>
      {problem && <Problem problem={problem} onRetry={retry} />}
      {check && !onlyFacts && (
        <section class="card">
          <h2>{say.checkTitle}</h2>
          <p role="status">
            <Pill tone={wrong === 0 ? 'good' : 'bad'} icon={wrong === 0 ? 'check' : 'circle-alert'}>
              {wrong === 0 ? say.valid : say.wrong(wrong)}
            </Pill>
          </p>
          <Notes tone="bad" notes={check.violations.map(({ path, reason }) => ({ path, note: `${reason}.` }))} />
        </section>
      )}
      {check?.variables && (
        <section class="card form">
          <h2>{say.samples}</h2>
          <p class="note">{say.samplesHint}</p>
          <VariableFields fields={check.variables} values={samples} onChange={onSamples} />
        </section>
      )}
      {facts && (
        <>
          <Limits facts={facts} />
          <section class="card">
            <h2>{say.billing}</h2>
            <p>{facts.billingClass}</p>
          </section>
          <section class="card">
            <h2>{say.features}</h2>
            <p>{facts.features.join(', ') || say.noDifferences}</p>
          </section>
          <section class="card">
            <h2>{say.differences}</h2>
            {facts.iphone.length === 0 && <p class="note">{say.noDifferences}</p>}
            <Notes tone="warn" notes={facts.iphone} />
          </section>
        </>
      )}
    </aside>
  )
}

function Notes({ tone, notes }: { tone: 'bad' | 'warn'; notes: Facts['iphone'] }) {
  if (notes.length === 0) return null
  return (
    <ul class="notes">
      {notes.map(({ path, note }) => (
        <li class={`tone-${tone}`}>
          <Icon name={tone === 'bad' ? 'circle-alert' : 'triangle-alert'} size={15} />
          <span>
            <b>{whereOf(path)}:</b> {note}
          </span>
        </li>
      ))}
    </ul>
  )
}

function Limits({ facts: { texts, buttons, cards } }: { facts: Facts }) {
  return (
    <section class="card">
      <h2>{say.limits}</h2>
      {texts.map(({ path, characters, maxCharacters, bytes, maxBytes }) => {
        const label = path === '/message' ? say.contact : whereOf(path)
        return (
          <>
            <Meter label={label} value={characters} max={maxCharacters} />
            {maxBytes !== undefined && <Meter label={say.bytes(label)} value={bytes} max={maxBytes} />}
          </>
        )
      })}
      {cards
        .filter(({ characters }) => characters > 0)
        .map(({ path, characters, iphoneCharacters }) => (
          <Meter
            label={cards.length > 1 ? `${whereOf(path)}: ${say.wholeOnIphone}` : say.wholeOnIphone}
            value={characters}
            max={iphoneCharacters}
          />
        ))}
      {buttons.map(({ path, count, maxCount }) => (
        <Meter label={whereOf(path)} value={count} max={maxCount} />
      ))}
    </section>
  )
}
