import { useState } from 'preact/hooks'
import { saveChanges } from '../../app/changes.ts'
import { TextField } from '../../kit/controls.tsx'
import { FormDialog } from '../../kit/form-dialog.tsx'
import * as say from '../../words/en-accounts.ts'
import { number } from '../../words/numbers.ts'
import { QUOTA_NAMES, type QuotaName, type Quotas } from './accounts-types.ts'
import { asNumber } from './as-number.ts'

type Props = { accountId: number; quotas: Quotas; onDone: () => void; onClose: () => void }

/** Changes the quotas of an account. */
export function QuotasDialog({ accountId, quotas, onDone, onClose }: Props) {
  const [before] = useState(() => textsOf(quotas))
  const [texts, setTexts] = useState(before)
  const isNoNumber = (name: QuotaName) => texts[name].trim() !== '' && asNumber(texts[name]) === undefined
  const submit = async () => {
    if (QUOTA_NAMES.some(isNoNumber)) return
    await saveChanges(`/accounts/${accountId}/quotas`, bodyOf(before), bodyOf(texts))
    onDone()
  }
  return (
    <FormDialog title={say.changeQuotas} action={say.save} run={submit} onClose={onClose}>
      {(wrongAt) => (
        <>
          <p class="hint">{say.quotaHint}</p>
          {QUOTA_NAMES.map((name) => (
            <TextField
              key={name}
              label={say.quotaNames[name]}
              value={texts[name]}
              onInput={(text) => setTexts({ ...texts, [name]: text })}
              placeholder={number.format(quotas[name].quota)}
              problem={isNoNumber(name) ? say.notNumber : wrongAt(`/${name}`)}
            />
          ))}
        </>
      )}
    </FormDialog>
  )
}

const bodyOf = (texts: Record<QuotaName, string>) => Object.fromEntries(QUOTA_NAMES.map((name) => [name, asNumber(texts[name]) ?? null]))

/** A default is an empty field, so that saving does not set it for the account. */
function textsOf(quotas: Quotas): Record<QuotaName, string> {
  const texts = QUOTA_NAMES.map((name) => [name, quotas[name].isDefault ? '' : number.format(quotas[name].quota)])
  return Object.fromEntries(texts) as Record<QuotaName, string>
}
