import { useCallback, useMemo, useState } from 'preact/hooks'
import { useFresh } from '../../app/fresh.ts'
import type { LiveEvent } from '../../app/live.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import type { Message, TimelineItem } from '../../timeline/types.ts'
import { dueTimesOf, isPending } from './pending.ts'

const AFTER_EVENT_MS = 400
/** Calls of webhooks emit no event: they are looked for often at first, and more and more rarely. */
const FIRST_POLL_MS = 1_000
const LAST_POLL_MS = 30_000

/** Reads a message and its timeline, and reads them again when something happens to it. */
export function useMessage(messageId: string) {
  const { account } = useFrame()
  const path = `/accounts/${account.accountId}/messages/${encodeURIComponent(messageId)}`
  const message = useResource<Message>(path)
  const timeline = useResource<{ items: TimelineItem[] }>(`${path}/timeline`)
  const reload = useCallback(() => {
    message.reload()
    timeline.reload()
  }, [message.reload, timeline.reload])
  const [actions, setActions] = useState(0)
  const state = useMemo(() => JSON.stringify([message.value, timeline.value]), [message.value, timeline.value])
  const messages = message.value === undefined ? [] : [message.value]
  useFresh(reload, {
    everyMs: AFTER_EVENT_MS,
    isAbout: (event: LiveEvent) => event.name === 'busy' || (event.name === 'event' && event.data.data.messageId === messageId),
    firstMs: FIRST_POLL_MS,
    restMs: LAST_POLL_MS,
    isPending: messages.some(isPending),
    state: `${actions} ${state}`,
    dueAt: dueTimesOf(messages),
  })
  return {
    message,
    items: timeline.value?.items,
    problem: message.problem ?? timeline.problem,
    /** Reads everything again, after an action on this page. */
    refresh: useCallback(() => {
      reload()
      setActions((last) => last + 1)
    }, [reload]),
  }
}
