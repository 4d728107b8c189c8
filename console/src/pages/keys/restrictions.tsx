import { SCOPES } from '../../../../server/src/scopes.ts'
import { Choice, Field } from '../../kit/controls.tsx'
import { TimeField } from '../../kit/time-field.tsx'
import * as say from '../../words/en-keys.ts'
import type { Restrictions, Scope } from './key.tsx'

/** What the fields have. `addresses`: as the person wrote them. */
export type Fields = { isEverything: boolean; scopes: Scope[]; expiresAt: string | undefined; addresses: string }

export const fieldsOf = ({ scopes, expiresAt, addresses = [] }: Restrictions): Fields => ({
  isEverything: scopes === undefined,
  scopes: scopes ?? [],
  expiresAt,
  addresses: addresses.join('\n'),
})

const addressesIn = (text: string) => text.split(/[\s,]+/).filter((address) => address !== '')

/** The body of a request. Null: no restriction. */
export function bodyOf({ isEverything, scopes, expiresAt, addresses }: Fields) {
  const list = addressesIn(addresses)
  return { scopes: isEverything ? null : scopes, expiresAt: expiresAt ?? null, addresses: list.length === 0 ? null : list }
}

type WrongAt = (path: string) => string | undefined
type Props = { fields: Fields; onChange: (fields: Fields) => void; wrongAt: WrongAt }

/** The fields of a form that restricts a key. Not a component, which would be drawn after the form has asked what stands at the fields. */
export function restrictionFields({ fields, onChange, wrongAt }: Props) {
  const { isEverything, expiresAt, addresses } = fields
  const wrongAddresses = addressProblem(addresses, wrongAt)
  const wrongScopes = wrongAt('/scopes') && say.atLeastOne
  return (
    <>
      <div class="field">
        <b class="field-label">{say.whatItMay}</b>
        <Choice
          label={say.whatItMay}
          value={isEverything ? 'everything' : 'only'}
          options={[
            { value: 'everything', text: say.everything },
            { value: 'only', text: say.only },
          ]}
          onChange={(value) => onChange({ ...fields, isEverything: value === 'everything' })}
        />
        {!isEverything && <Scopes fields={fields} onChange={onChange} problem={wrongScopes} />}
      </div>
      <TimeField
        label={say.expires}
        hint={say.expiresHint}
        value={expiresAt}
        problem={wrongAt('/expiresAt')}
        onChange={(time) => onChange({ ...fields, expiresAt: time })}
      />
      <Field label={say.addresses} hint={say.addressesHint} problem={wrongAddresses}>
        {({ id, describedBy }) => (
          <textarea
            class="input"
            id={id}
            rows={3}
            aria-describedby={describedBy}
            aria-invalid={wrongAddresses !== undefined}
            spellcheck={false}
            value={addresses}
            onInput={(event) => onChange({ ...fields, addresses: event.currentTarget.value })}
          />
        )}
      </Field>
    </>
  )
}

function Scopes({ fields, onChange, problem }: Omit<Props, 'wrongAt'> & { problem: string | undefined }) {
  const { scopes } = fields
  const toggle = (scope: Scope) =>
    onChange({ ...fields, scopes: scopes.includes(scope) ? scopes.filter((each) => each !== scope) : [...scopes, scope] })
  return (
    <fieldset class="scopes">
      <legend class="sr">{say.only}</legend>
      {SCOPES.map((scope) => (
        <label>
          <input type="checkbox" checked={scopes.includes(scope)} onChange={() => toggle(scope)} />
          <span>
            <code>{scope}</code> <small>{say.scopes[scope]}</small>
          </span>
        </label>
      ))}
      {problem && <p class="hint is-wrong">{problem}</p>}
    </fieldset>
  )
}

/** What is wrong with the addresses. It names each wrong one, since there may be many. */
function addressProblem(text: string, wrongAt: WrongAt): string | undefined {
  const wrong = addressesIn(text).flatMap((address, index) => {
    const reason = wrongAt(`/addresses/${index}`)
    return reason === undefined ? [] : `${address} ${reason}`
  })
  return wrong.join(' ') || wrongAt('/addresses')
}
