import { useEffect, useRef } from 'preact/hooks'
import type { ApiProblem } from '../../app/api.ts'
import { usePolled } from '../../app/fresh.ts'
import type { LiveEvent } from '../../app/live.ts'
import type { Place } from '../../app/place.ts'
import { useResource, useThrottled } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { useLedger } from './follow-ledger.ts'
import { conversationsOf, lastMessages, type PhoneSms } from './ledger.ts'
import type { PhoneSummary } from './phone.ts'
import { Saw } from './saw.tsx'
import { Stage } from './stage.tsx'
import { isPending, useTimelines } from './timelines.ts'

const RELOAD_EVERY_MS = 500
/** Attempts of webhooks emit no event. Most come this soon after another event. */
const LOOK_AGAIN_MS = 1_200
const PHONE_POLL_MS = 1_000
const MESSAGES_SEEN = 3

/** `alert`: the problem that the page shows already. */
type Props = { phone: PhoneSummary; place: Place; alert?: ApiProblem | undefined; onChange: () => void }

/** One phone, drawn, and what Herald saw of it. */
export function OnePhone({ phone, place, alert, onChange }: Props) {
  const { account } = useFrame()
  const path = `/accounts/${account.accountId}/phones/${phone.phoneId}`
  const { entries, hasOlder, problem } = useLedger(path)
  const sms = useResource<{ items: PhoneSms[] }>(`${path}/sms`)
  const ids = lastMessages(entries ?? [], phone.messageIds ?? [], MESSAGES_SEEN)
  const { timelines, read } = useTimelines(account.accountId, ids)
  const reload = useThrottled(() => {
    onChange()
    sms.reload()
    read()
  }, RELOAD_EVERY_MS)
  // Retries, and what other people do with the phone, emit no event. Nor do accepted messages, which the phone itself names.
  usePolled(onChange, { restMs: PHONE_POLL_MS })
  usePolled(reload, { isPending: [...timelines.values()].some(isPending), state: JSON.stringify([...timelines]) })
  const lastPosition = entries?.at(-1)?.position ?? 0
  useEffect(() => {
    if (lastPosition > 0) reload()
  }, [lastPosition, reload])
  useOwnEvents(phone, ids, reload)
  const conversations = conversationsOf(entries ?? [], hasOlder, sms.value?.items ?? [])
  return (
    <>
      <div class="stage-column">
        <Stage
          phone={phone}
          conversations={conversations}
          place={place}
          isLoading={entries === undefined || (sms.value === undefined && sms.problem === undefined)}
          alert={alert}
          ledgerProblem={problem}
          onChange={onChange}
        />
      </div>
      <Saw phone={phone} timelines={timelines} entries={entries ?? []} />
    </>
  )
}

/** Calls the function for each event about this phone, and LOOK_AGAIN_MS after the last of them. */
function useOwnEvents({ phone }: PhoneSummary, ids: string[], onEvent: () => void): void {
  const { listen } = useFrame()
  const latest = useRef(ids)
  latest.current = ids
  useEffect(() => {
    let timer = 0
    const stop = listen((event) => {
      if (!isAbout(event, phone, latest.current)) return
      onEvent()
      clearTimeout(timer)
      timer = setTimeout(onEvent, LOOK_AGAIN_MS)
    })
    return () => {
      stop()
      clearTimeout(timer)
    }
  }, [listen, phone, onEvent])
}

/** For viewers, numbers are masked, and several phones may look the same: for them, only the message decides. */
function isAbout(event: LiveEvent, phone: string, ids: string[]): boolean {
  if (event.name === 'gap' || event.name === 'busy') return true
  if (event.name !== 'event') return false
  const { messageId, recipient } = event.data.data
  return ids.includes(String(messageId)) || (recipient === phone && !phone.includes('•'))
}
