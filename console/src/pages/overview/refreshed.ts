import { useFresh } from '../../app/fresh.ts'
import type { LiveEvent } from '../../app/live.ts'
import { type Resource, useResource } from '../../app/resource.ts'

/** Some changes emit no event, such as a campaign that begins. */
const POLL_MS = 30_000

type Options = { everyMs: number; pollMs?: number; firstMs?: number; isAbout: (event: LiveEvent) => boolean }

/**
 * A part of the overview: read again after an event that it is about, at most once in `everyMs`, and every `pollMs`; from `firstMs` on after a
 * change.
 */
export function useRefreshed<T>(path: string, { everyMs, pollMs = POLL_MS, firstMs = pollMs, isAbout }: Options): Resource<T> {
  const resource = useResource<T>(path)
  useFresh(resource.reload, { everyMs, isAbout, restMs: pollMs, firstMs, state: JSON.stringify(resource.value) })
  return resource
}
