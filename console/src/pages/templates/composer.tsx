import { useRef, useState } from 'preact/hooks'
import { draftOf, keepDraft } from '../../app/drafts.ts'
import { useFresh } from '../../app/fresh.ts'
import { filter, type Place } from '../../app/place.ts'
import { type Resource, useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { useTemplates } from '../../app/templates.ts'
import { Choice } from '../../kit/controls.tsx'
import { Crumbs } from '../../kit/crumbs.tsx'
import { Reading } from '../../kit/reading.tsx'
import { pages } from '../../words/en.ts'
import * as say from '../../words/en-templates.ts'
import { Head, Note } from './actions.tsx'
import { Checks } from './checks.tsx'
import type { Editing } from './field-view.tsx'
import { ContentForm, type FormProps, JsonView, TemplateFields } from './form.tsx'
import { Previews } from './previews.tsx'
import { bodyOf, isBroken, type Template } from './template.ts'
import { useCheck } from './use-check.ts'
import { useDrawn } from './use-drawn.ts'
import { useDraftNames, useWork } from './use-work.ts'
import { pointerTo, withValue } from './values.ts'
import { givenValues, namesOf, sampleValues, type Values } from './variables.tsx'

/** A template that somebody else changes shows it soon. */
const REST_MS = 15_000

/** A new template, or the one with this id. */
export function ComposerPage({ place, id }: { place: Place; id: string }) {
  const { accountId } = useFrame().account
  const isNew = id === 'new'
  const template = useResource<Template>(isNew ? undefined : `/accounts/${accountId}/templates/${encodeURIComponent(id)}`)
  useFresh(template.reload, { restMs: REST_MS, isAbout: () => false })
  const { value, problem } = template
  // A template that was deleted does not come back. What the person has written can be saved as a new one.
  const isGone = useRef(false)
  isGone.current ||= problem?.status === 404
  const draftName = useDraftNames()(id)
  const isShown = isNew || value || (isGone.current && draftOf(draftName))
  return (
    <>
      <Crumbs page="templates" {...(!isNew && { id })}>
        {say.add}
      </Crumbs>
      {!isShown && <h1 class={problem === undefined ? 'sr' : ''}>{pages.templates}</h1>}
      {isGone.current && isShown ? <Note text={say.gone} /> : <Reading {...template} />}
      {isShown && <Composer place={place} id={id} template={template} saved={isGone.current ? undefined : value} />}
    </>
  )
}

type Props = { place: Place; id: string; template: Resource<Template>; saved: Template | undefined }

function Composer({ place, id, template, saved }: Props) {
  const isReadOnly = useFrame().account.role === 'viewer'
  const own = useWork(id, template.value)
  const { work, change } = own
  const [samples, setSamples] = useSamples(id)
  const result = useCheck((variables) => ({ ...bodyOf(work, saved?.status ?? 'DRAFT'), ...sampleValues(variables, samples) }))
  // If the check fails, the phones draw the content as it is written.
  const { drawn, images, retry } = useDrawn((result.problem === undefined && result.check?.rendered) || work.message)
  const templates = useTemplates(JSON.stringify(work.message).includes('"trigger_template"'))
  const problemOf = (pointer: string) => result.check?.violations.find(({ path }) => path === pointer)?.reason
  const editing: Editing = {
    message: work.message,
    set: (path, value) => change({ message: withValue(work.message, path, value) }),
    problemAt: (path) => problemOf(pointerTo(path)),
    images,
    lookAgain: retry,
    templates,
  }
  return (
    <>
      <Head
        place={place}
        template={template}
        saved={saved}
        own={own}
        testValues={givenValues(namesOf(result.check?.variables ?? []), samples)}
      />
      <div class="composer">
        <section class="card form editor" aria-label={say.editor}>
          <fieldset class="form" disabled={isReadOnly}>
            <legend class="sr">{say.editor}</legend>
            <TemplateFields work={work} onChange={change} problemOf={(name) => problemOf(`/${name}`)} />
          </fieldset>
          <MessageFields place={place} work={work} editing={editing} onChange={change} isReadOnly={isReadOnly} />
        </section>
        <Previews drawn={drawn} />
        <Checks result={result} onlyFacts={isReadOnly} samples={samples} onSamples={setSamples} />
      </div>
    </>
  )
}

/** The sample values of a template's variables. They survive a reload of the page, and nobody else sees them. */
function useSamples(id: string): [samples: Values, change: (samples: Values) => void] {
  const name = `${useDraftNames()(id)}-samples`
  const [samples, setSamples] = useState(() => draftOf<Values>(name) ?? {})
  const change = (next: Values) => {
    setSamples(next)
    keepDraft(name, next)
  }
  return [samples, change]
}

type FieldsProps = Omit<FormProps, 'problemOf'> & { place: Place; isReadOnly: boolean }

/** The content, as a form or as JSON. */
function MessageFields({ place, work, editing, onChange, isReadOnly }: FieldsProps) {
  const isJson = place.query.get('view') === 'json'
  return (
    <>
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
          <JsonView work={work} onChange={onChange} problem={editing.problemAt([])} />
        ) : (
          <>
            {isBroken(work) && <Note text={say.formOfBroken} />}
            <ContentForm editing={editing} />
          </>
        )}
      </fieldset>
    </>
  )
}
