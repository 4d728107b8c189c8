import { useFresh } from '../../app/fresh.ts'
import { filter, type Place } from '../../app/place.ts'
import { type Resource, useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { Choice } from '../../kit/controls.tsx'
import { Crumbs } from '../../kit/crumbs.tsx'
import { Icon } from '../../kit/icon.tsx'
import { Reading } from '../../kit/reading.tsx'
import { pages } from '../../words/en.ts'
import * as say from '../../words/en-templates.ts'
import { Head } from './actions.tsx'
import { Checks } from './checks.tsx'
import type { Editing } from './field-view.tsx'
import { ContentForm, JsonView, TemplateFields } from './form.tsx'
import { Previews } from './previews.tsx'
import { bodyOf, isBroken, type Template } from './template.ts'
import { useCheck } from './use-check.ts'
import { useDrawn } from './use-drawn.ts'
import { useWork } from './use-work.ts'
import { pointerTo, withValue } from './values.ts'

/** A template that somebody else changes shows it soon. */
const REST_MS = 15_000

/** A new template, or the one with this id. */
export function ComposerPage({ place, id }: { place: Place; id: string }) {
  const { accountId } = useFrame().account
  const isNew = id === 'new'
  const template = useResource<Template>(isNew ? undefined : `/accounts/${accountId}/templates/${encodeURIComponent(id)}`)
  useFresh(template.reload, { restMs: REST_MS, isAbout: () => false })
  const { value } = template
  return (
    <>
      <Crumbs page="templates">{isNew ? say.add : (value?.name ?? id)}</Crumbs>
      {!isNew && value === undefined && <h1 class={template.problem === undefined ? 'sr' : ''}>{pages.templates}</h1>}
      {!isNew && <Reading {...template} />}
      {(isNew || value !== undefined) && <Composer place={place} template={template} />}
    </>
  )
}

type Props = { place: Place; template: Resource<Template> }

function Composer({ place, template }: Props) {
  const isJson = place.query.get('view') === 'json'
  const isReadOnly = useFrame().account.role === 'viewer'
  const saved = template.value
  const own = useWork(saved)
  const { work, change } = own
  const body = bodyOf(work, saved?.status ?? 'DRAFT')
  const result = useCheck(body)
  const { drawn, images, retry } = useDrawn(work.message)
  const problemAtPointer = (pointer: string) => result.check?.violations.find(({ path }) => path === pointer)?.reason
  const editing: Editing = {
    message: work.message,
    set: (path, value) => change({ message: withValue(work.message, path, value) }),
    problemAt: (path) => problemAtPointer(pointerTo(path)),
    images,
    lookAgain: retry,
  }
  return (
    <>
      <Head place={place} template={template} saved={saved} own={own} />
      <div class="composer">
        <section class="card form editor" aria-label={say.editor}>
          <fieldset class="form" disabled={isReadOnly}>
            <legend class="sr">{say.editor}</legend>
            <TemplateFields work={work} onChange={change} problemOf={(name) => problemAtPointer(`/${name}`)} />
          </fieldset>
          <Choice
            label={say.view}
            value={isJson ? 'json' : 'form'}
            options={[
              { value: 'form', text: say.form },
              { value: 'json', text: say.json },
            ]}
            onChange={(view) => filter(place, { view: view === 'json' ? view : undefined })}
          />
          <fieldset class="form" disabled={isReadOnly}>
            <legend class="sr">{say.fields.message}</legend>
            {isJson ? (
              <JsonView work={work} onChange={change} problem={editing.problemAt([])} />
            ) : (
              <>
                {isBroken(work) && (
                  <p class="editor-note tone-warn" role="status">
                    <Icon name="triangle-alert" size={15} /> {say.formOfBroken}
                  </p>
                )}
                <ContentForm editing={editing} />
              </>
            )}
          </fieldset>
        </section>
        <Previews drawn={drawn} />
        <Checks result={result} onlyFacts={isReadOnly} />
      </div>
    </>
  )
}
