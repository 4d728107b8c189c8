import { useState } from 'preact/hooks'
import { ask } from '../../app/api.ts'
import { TextField } from '../../kit/controls.tsx'
import { FormDialog } from '../../kit/form-dialog.tsx'
import { words } from '../../words/words.ts'
import { QUOTA_NAMES, type QuotaName, type Quotas } from './accounts-types.ts'
import { asNumber } from './as-number.ts'

type Props = { accountId: number; quotas: Quotas; onDone: () => void; onClose: () => void }

/** Changes the quotas of an account. */
export function QuotasDialog({ accountId, quotas, onDone, onClose }: Props) {
  const w = words.accounts
  const [texts, setTexts] = useState(() => textsOf(quotas))
  const isNoNumber = (name: QuotaName) => texts[name].trim() !== '' && asNumber(texts[name]) === undefined
  const submit = async () => {
    if (QUOTA_NAMES.some(isNoNumber)) return
    const body = Object.fromEntries(QUOTA_NAMES.map((name) => [name, asNumber(texts[name]) ?? null]))
    await ask(`/accounts/${accountId}/quotas`, { method: 'PATCH', body })
    onDone()
  }
  return (
    <FormDialog title={w.changeQuotas} action={w.save} run={submit} onClose={onClose}>
      {(wrongAt) => (
        <>
          <p class="hint">{w.quotaHint}</p>
          {QUOTA_NAMES.map((name) => (
            <TextField
              key={name}
              label={w.quota[name]}
              value={texts[name]}
              onInput={(text) => setTexts({ ...texts, [name]: text })}
              placeholder={words.number(quotas[name].quota)}
              problem={isNoNumber(name) ? w.notNumber : wrongAt(`/${name}`)}
            />
          ))}
        </>
      )}
    </FormDialog>
  )
}

/** A default is an empty field, so that saving does not set it for the account. */
function textsOf(quotas: Quotas): Record<QuotaName, string> {
  const texts = QUOTA_NAMES.map((name) => [name, quotas[name].isDefault ? '' : words.number(quotas[name].quota)])
  return Object.fromEntries(texts) as Record<QuotaName, string>
}
