import { type Resource, useResource } from '../../../app/resource.ts'
import { useFrame } from '../../../app/session.tsx'
import { Facts } from '../../../kit/display.tsx'
import { Reading } from '../../../kit/reading.tsx'
import * as campaignWords from '../../../words/en-campaigns.ts'
import * as say from '../../../words/en-wizard.ts'
import { number } from '../../../words/numbers.ts'
import { type Draft, MAX_GROUPS } from './draft.ts'

/** `recipients` and `optedOut` are null if the groups are too large to count. */
type Audience = { members: number; recipients: number | null; optedOut: number | null }

export type Counted = Resource<Audience>

/** Whom the campaign reaches if it starts now. */
export function useAudience({ agentId, groups }: Pick<Draft, 'agentId' | 'groups'>): Counted {
  const { accountId } = useFrame().account
  const query = new URLSearchParams({ agentId, segmentIds: groups.join() })
  const isCountable = groups.length > 0 && groups.length <= MAX_GROUPS
  return useResource(isCountable ? `/accounts/${accountId}/audience?${query}` : undefined)
}

/** To how many something is sent, in words, too. Of groups that are too large to count, at most. */
export function reachOf({ members, recipients, optedOut }: Audience) {
  const reached = recipients === null ? members : recipients - (optedOut ?? 0)
  return { reached, inWords: campaignWords.atMost(campaignWords.recipients(reached), recipients !== null) }
}

export function AudienceFacts({ counted }: { counted: Counted }) {
  const { value, problem, isLoading } = counted
  if (value === undefined && problem === undefined && !isLoading) return null
  return (
    <section class="camp-audience" aria-label={say.audience}>
      <h3>{say.audience}</h3>
      <Reading {...counted} />
      {value && <Reach audience={value} />}
    </section>
  )
}

function Reach({ audience }: { audience: Audience }) {
  const { members, recipients, optedOut } = audience
  const { reached, inWords } = reachOf(audience)
  return (
    <>
      <Facts
        facts={[
          [say.members, number.format(members)],
          [say.overlap, recipients && number.format(members - recipients)],
          [say.optedOut, optedOut && number.format(optedOut)],
          [say.reached, <b>{inWords}</b>],
        ]}
      />
      {recipients === null && <p class="hint">{say.tooLarge}</p>}
      {reached === 0 && <p class="hint is-wrong">{say.nobody}</p>}
    </>
  )
}
