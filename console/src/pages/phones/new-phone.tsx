import { useState } from 'preact/hooks'
import { go } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { Submit, TextField } from '../../kit/controls.tsx'
import { Dialog } from '../../kit/dialog.tsx'
import { Icon } from '../../kit/icon.tsx'
import * as say from '../../words/en-phones.ts'
import { iconOf, KINDS, readNumber } from './phone.ts'

/** Every number is a phone of the simulated network: this opens one, and says what its last two digits mean. */
export function NewPhone({ onClose }: { onClose: () => void }) {
  const { account } = useFrame()
  const [text, setText] = useState('+48500100200')
  const [isTried, setTried] = useState(false)
  const number = readNumber(text)
  const submit = async () => {
    setTried(true)
    if (number === undefined) return
    go({ accountId: account.accountId, path: ['phones'], query: { phone: number } })
    onClose()
  }
  return (
    <Dialog title={say.add} onClose={onClose} onSubmit={submit} actions={<Submit text={say.open} />}>
      <TextField
        label={say.phoneNumber}
        value={text}
        onInput={setText}
        hint={say.numberHint}
        problem={isTried && number === undefined ? say.numberWrong : undefined}
      />
      <fieldset class="endings">
        <legend>{say.endings}</legend>
        {KINDS.map((kind, index) => {
          const ending = `0${index}`
          return (
            <button type="button" aria-pressed={number?.endsWith(ending) === true} onClick={() => setText(withEnding(text, ending))}>
              <Icon name={iconOf(kind)} size={15} />
              <b>…{ending}</b> {say.behaviours[kind]}
            </button>
          )
        })}
      </fieldset>
    </Dialog>
  )
}

function withEnding(text: string, ending: string): string {
  return `${(readNumber(text) ?? '+48500100200').slice(0, -2)}${ending}`
}
