import type { ApiProblem } from '../../app/api.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { Button, Choice, Field, Select } from '../../kit/controls.tsx'
import { Problem } from '../../kit/problem.tsx'
import { words } from '../../words/words.ts'
import type { Draft } from './draft.ts'
import { SAMPLES } from './samples.ts'

type Props = { draft: Draft; onChange: (more: Partial<Draft>) => void; problem: ApiProblem | undefined; isWrongJson: boolean }

/** The content: a text, a template, or a whole object in JSON. */
export function ContentFields({ draft, onChange, problem, isWrongJson }: Props) {
  const problems = problem?.details.filter(({ path }) => path.startsWith('/message'))
  const wrong = problems?.map(({ path, reason }) => `${path.replace(/^\/message\/inline/, '') || ''} ${reason}`.trim()).join('; ')
  return (
    <fieldset class="form">
      <legend class="sr">{words.send.content}</legend>
      <Choice
        label={words.send.content}
        value={draft.kind}
        onChange={(kind) => onChange({ kind })}
        options={[
          { value: 'text', text: words.send.text },
          { value: 'json', text: words.send.rich },
          { value: 'template', text: words.send.template },
        ]}
      />
      {draft.kind === 'template' && <TemplateField draft={draft} onChange={onChange} />}
      {draft.kind === 'json' && (
        <div class="samples">
          {(['replies', 'card'] as const).map((name) => (
            <Button kind="quiet" icon="sparkles" onClick={() => onChange({ json: JSON.stringify(SAMPLES[name], undefined, 2) })}>
              {words.send.samples[name]}
            </Button>
          ))}
        </div>
      )}
      {draft.kind !== 'template' && (
        <Field
          label={draft.kind === 'text' ? words.send.text : words.send.json}
          problem={wrong || (draft.kind === 'json' && isWrongJson && draft.json !== '' ? words.send.wrongJson : undefined)}
        >
          {({ id, describedBy }) => (
            <textarea
              class={draft.kind === 'json' ? 'input code' : 'input'}
              id={id}
              aria-describedby={describedBy}
              rows={draft.kind === 'json' ? 12 : 3}
              required
              spellcheck={draft.kind === 'text'}
              value={draft.kind === 'json' ? draft.json : draft.text}
              onInput={(event) => onChange({ [draft.kind]: event.currentTarget.value })}
            />
          )}
        </Field>
      )}
    </fieldset>
  )
}

type Template = { id: number; name: string; status: string }

function TemplateField({ draft, onChange }: Pick<Props, 'draft' | 'onChange'>) {
  const { account } = useFrame()
  const templates = useResource<{ items: Template[] }>(`/accounts/${account.accountId}/templates?status=APPROVED&limit=200`)
  const items = templates.value?.items ?? []
  return (
    <>
      <Select
        label={words.send.template}
        value={draft.templateId}
        onChange={(templateId) => onChange({ templateId })}
        options={[{ value: '', text: words.send.chooseTemplate }, ...items.map(({ id, name }) => ({ value: String(id), text: name }))]}
        required
        hint={templates.value && items.length === 0 && words.send.noTemplate}
      />
      {templates.problem && <Problem problem={templates.problem} onRetry={templates.reload} />}
    </>
  )
}
