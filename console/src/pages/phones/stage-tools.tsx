import { useState } from 'preact/hooks'
import { Button } from '../../kit/controls.tsx'
import * as say from '../../words/en-phones.ts'
import type { PhoneSummary } from './phone.ts'
import type { Act } from './stage.tsx'

/** `canReply`: whether the conversation is with an agent. `onWrite`: the person has begun a text. */
type Props = { phone: PhoneSummary; canReply: boolean; act: Act; onWrite: () => void; onShare: () => void }

/** What a person can do with a phone besides tapping. A phone that is off can only be switched on. */
export function StageTools({ phone, canReply, act, onWrite, onShare }: Props) {
  const { online } = phone
  return (
    <div class="stage-tools">
      {canReply ? (
        <>
          <Write isDisabled={!online} act={act} onWrite={onWrite} />
          <Button icon="map-pin" disabled={!online} onClick={onShare}>
            {say.sharePlace}
          </Button>
          <Button icon="hand" disabled={!online} onClick={() => void act('stop')}>
            {say.stop}
          </Button>
        </>
      ) : (
        <p class="soft">{say.noSmsReply}</p>
      )}
      <Button icon="power" onClick={() => void act(online ? 'offline' : 'online')}>
        {online ? say.goOffline : say.goOnline}
      </Button>
    </div>
  )
}

function Write({ isDisabled, act, onWrite }: { isDisabled: boolean; act: Act; onWrite: () => void }) {
  const [text, setText] = useState('')
  const submit = async (event: Event) => {
    event.preventDefault()
    // The person may have begun the next text while this one was being sent.
    if (text.trim() !== '' && (await act('reply', { text }))) setText((now) => (now === text ? '' : now))
  }
  return (
    <form class="write" onSubmit={(event) => void submit(event)}>
      <input
        class="input"
        aria-label={say.write}
        placeholder={say.write}
        maxLength={3072}
        disabled={isDisabled}
        value={text}
        onInput={(event) => {
          onWrite()
          setText(event.currentTarget.value)
        }}
      />
      <Button type="submit" icon="send" disabled={isDisabled}>
        {say.sendText}
      </Button>
    </form>
  )
}
