import { useEffect, useState } from 'preact/hooks'
import { usePolled } from '../../app/fresh.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import type { Health } from './health-types.ts'
import { type Trouble, troublesOf, withoutDatabase } from './troubles.ts'

/** Figures are up to a second old, and a process counts as lost after seven: so a loss shows within ten seconds. */
const EVERY_MS = 1_000
/** A proxy responds with 503, too, but with no such code. */
const UNAVAILABLE = 'RCS_UNAVAILABLE'

/** The health, read every second. `troubles`: undefined as long as nothing is known. */
export function useHealth() {
  const { value, problem, reload } = useResource<Health>('/health')
  usePolled(reload, { restMs: EVERY_MS })
  const isWithoutDatabase = problem?.code === UNAVAILABLE
  const known = problem === undefined && value ? troublesOf(value) : undefined
  const troubles = isWithoutDatabase ? [withoutDatabase()] : known
  return { health: value, troubles, problem: isWithoutDatabase ? undefined : problem, isStale: problem !== undefined, reload }
}

/** What the stream says to operators every five seconds, wherever they are. Nothing while the connection is lost. */
export function useStreamedTroubles(): Trouble[] {
  const { listen, live } = useFrame()
  const [troubles, setTroubles] = useState<Trouble[]>([])
  useEffect(
    () =>
      listen((event) => {
        if (event.name === 'health') setTroubles('nodes' in event.data ? troublesOf(event.data as Health) : [withoutDatabase()])
      }),
    [listen],
  )
  return live === 'lost' ? [] : troubles
}
