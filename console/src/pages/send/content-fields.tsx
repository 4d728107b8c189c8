import { type ListedTemplate, useTemplates } from '../../app/templates.ts'
import { Choice } from '../../kit/controls.tsx'
import * as say from '../../words/en-send.ts'
import { TemplateSelect, TextArea } from '../templates/inputs.tsx'
import { useCheck } from '../templates/use-check.ts'
import { VariableFields } from '../templates/variables.tsx'
import type { FormProps } from './send.tsx'
import { messageOf } from './use-draft.ts'

/** The content: a text, a template, or a whole object in JSON. */
export function ContentFields({ draft, onChange, problem, isWrongJson }: FormProps & { isWrongJson: boolean }) {
  const { kind } = draft
  const templates = useTemplates(kind === 'template')
  const problems = problem?.details.filter(({ path }) => path.startsWith('/message'))
  const wrong = problems?.map(({ path, reason }) => `${path.replace(/^\/message\/inline/, '')} ${reason}`.trim()).join('; ')
  return (
    <fieldset class="form">
      <legend class="sr">{say.content}</legend>
      <Choice
        label={say.content}
        value={kind}
        onChange={(next) => onChange({ kind: next })}
        options={[
          { value: 'text', text: say.text },
          { value: 'json', text: say.rich },
          { value: 'template', text: say.template },
        ]}
      />
      {kind === 'template' ? (
        <TemplateSelect label={say.template} value={draft.templateId} onChange={(templateId) => onChange({ templateId })} all={templates} />
      ) : (
        <TextArea
          key={kind}
          label={kind === 'text' ? say.text : say.json}
          problem={wrong || (isWrongJson ? say.wrongJson : undefined)}
          rows={kind === 'json' ? 12 : 3}
          required
          isCode={kind === 'json'}
          value={draft[kind]}
          onInput={(text) => onChange({ [kind]: text })}
        />
      )}
      <DraftVariables draft={draft} onChange={onChange} templates={templates.templates} />
    </fieldset>
  )
}

type VariablesProps = Pick<FormProps, 'draft' | 'onChange'> & { templates: ListedTemplate[] | undefined }

/** The values of the variables in the content. */
function DraftVariables({ draft, onChange, templates }: VariablesProps) {
  const { inline, templateId } = { inline: undefined, templateId: undefined, ...messageOf(draft) }
  const message = inline ?? templates?.find(({ id }) => id === templateId)?.message
  const body = message !== undefined && JSON.stringify(message).includes('{{') ? { message } : undefined
  const { check } = useCheck(() => body)
  return (
    <VariableFields fields={(body && check?.variables) ?? []} values={draft.variables} onChange={(variables) => onChange({ variables })} />
  )
}
