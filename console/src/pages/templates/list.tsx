import { useState } from 'preact/hooks'
import { filter, linkTo, type Place } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { AsCurl } from '../../kit/as-curl.tsx'
import { Button, ButtonLink } from '../../kit/controls.tsx'
import { Ago, Empty, PageHead, Pill } from '../../kit/display.tsx'
import { Filters } from '../../kit/filters.tsx'
import { LongTable } from '../../kit/long-table.tsx'
import { Reading } from '../../kit/reading.tsx'
import { meantOf } from '../../phone/meant.ts'
import { pages } from '../../words/en.ts'
import { nothingFound } from '../../words/en-kit.ts'
import * as messageWords from '../../words/en-messages.ts'
import * as say from '../../words/en-templates.ts'
import { Previews } from './previews.tsx'
import { firstTextOf, type Template } from './template.ts'

const FILTERS = [
  { name: 'status', label: say.status, any: messageWords.filters.anyStatus, texts: say.statuses },
  { name: 'type', label: say.content, any: say.anyContent, texts: say.types },
]

/** All templates of the account, and one of them as phones show it. */
export function TemplateList({ place }: { place: Place }) {
  const given = FILTERS.flatMap(({ name }) => (place.query.get(name) ? [[name, place.query.get(name) as string]] : []))
  const path = `templates${given.length === 0 ? '' : `?${new URLSearchParams(given)}`}`
  return (
    <>
      <PageHead title={pages.templates}>
        <AsCurl path={path} />
        <AddLink />
      </PageHead>
      <Filters place={place} filters={FILTERS} />
      <Shown key={path} place={place} path={path} isFiltered={given.length > 0} />
    </>
  )
}

function AddLink() {
  const { accountId, role } = useFrame().account
  if (role === 'viewer') return null
  return (
    <ButtonLink kind="primary" icon="plus" href={linkTo({ accountId, path: ['templates', 'new'] })}>
      {say.add}
    </ButtonLink>
  )
}

/** The list, and beside it the template that the person has chosen, or the first one. */
function Shown({ place, path, isFiltered }: { place: Place; path: string; isFiltered: boolean }) {
  const { accountId } = useFrame().account
  const [first, setFirst] = useState<number>()
  const chosen = place.query.get('show')
  const shown = chosen ?? first
  return (
    <div class={`gallery ${chosen === null ? '' : 'has-choice'}`}>
      <div>
        <LongTable<Template>
          label={pages.templates}
          path={`/accounts/${accountId}/${path}`}
          columns={[
            { title: say.template },
            { title: say.content, isWide: true },
            { title: say.status },
            { title: say.updated, isWide: true },
            { title: say.preview },
          ]}
          keyOf={({ id }) => String(id)}
          cells={(template) => <Cells template={template} place={place} isShown={String(template.id) === String(shown)} />}
          empty={
            <Empty icon="layout-template" title={isFiltered ? nothingFound : say.none}>
              {!isFiltered && <p>{say.noneHint}</p>}
              {!isFiltered && <AddLink />}
            </Empty>
          }
          onPage={([template]) => setFirst((last) => last ?? template?.id)}
        />
      </div>
      {shown !== undefined && <Preview key={shown} id={shown} />}
    </div>
  )
}

function Cells({ template, place, isShown }: { template: Template; place: Place; isShown: boolean }) {
  const { id, name, status, message, updatedAt } = template
  const type = say.types[message.type]
  const text = firstTextOf(message)
  return (
    <>
      <td>
        <a class="row-link" href={linkTo({ accountId: place.accountId, path: ['templates', String(id)] })}>
          {name}
        </a>
        <small class="first-text" title={text}>
          {text}
        </small>
        <small class="is-narrow">
          {type} · <Ago at={updatedAt} />
        </small>
      </td>
      <td class="is-wide">{type}</td>
      <td>
        <Pill tone={status === 'APPROVED' ? 'good' : 'plain'}>{say.statuses[status]}</Pill>
      </td>
      <td class="is-wide when">
        <Ago at={updatedAt} />
      </td>
      <td>
        <Button
          kind="quiet"
          icon="eye"
          aria-label={say.show(name)}
          aria-pressed={isShown}
          onClick={() => filter(place, { show: String(id) })}
        />
      </td>
    </>
  )
}

function Preview({ id }: { id: string | number }) {
  const { accountId } = useFrame().account
  const template = useResource<Template>(`/accounts/${accountId}/templates/${encodeURIComponent(id)}`)
  const { value } = template
  return (
    <div class="gallery-preview">
      <Reading {...template} />
      {value && <Previews drawn={meantOf(value.message)} title={value.name} />}
    </div>
  )
}
