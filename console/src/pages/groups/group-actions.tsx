import { useState } from 'preact/hooks'
import { ask, askAll } from '../../app/api.ts'
import { go } from '../../app/place.ts'
import { useRun } from '../../app/run.ts'
import { useFrame } from '../../app/session.tsx'
import { AsCurl } from '../../kit/as-curl.tsx'
import { Button } from '../../kit/controls.tsx'
import { Problem } from '../../kit/problem.tsx'
import { Sure } from '../../kit/sure.tsx'
import * as say from '../../words/en-groups.ts'
import type { Campaign } from '../campaigns/campaign.ts'
import { ImportLink } from './links.tsx'
import { NameGroup } from './name-group.tsx'
import { pathOf, type Segment } from './segments.ts'

type Props = { group: Segment; onChanged: () => void }

/** What can be done with a group as a whole. A viewer only sees it. */
export function GroupActions({ group, onChanged }: Props) {
  const { accountId, role } = useFrame().account
  const [isRenaming, setRenaming] = useState(false)
  /** How many scheduled campaigns the deletion would affect. */
  const [scheduled, setScheduled] = useState<number>()
  const { run, isBusy, problem } = useRun(() => {})
  const { segmentId, members } = group
  const prepareDelete = () =>
    run(async () => {
      const campaigns = await askAll<Campaign>(`/accounts/${accountId}/campaigns?status=SCHEDULED`)
      setScheduled(campaigns.filter(({ segmentIds }) => segmentIds.includes(segmentId)).length)
      return ''
    })
  return (
    <>
      <AsCurl path={`segments/${segmentId}/members`} />
      {role !== 'viewer' && (
        <>
          <Button icon="pencil" onClick={() => setRenaming(true)}>
            {say.rename}
          </Button>
          <Button icon="trash-2" kind="danger" isBusy={isBusy} onClick={() => void prepareDelete()}>
            {say.deleteGroup}
          </Button>
          <ImportLink into={segmentId} />
        </>
      )}
      {problem && <Problem problem={problem} />}
      {isRenaming && <NameGroup title={say.rename} group={group} onDone={onChanged} onClose={() => setRenaming(false)} />}
      {/* The number of members has to be typed, so that nobody deletes thousands by two clicks. */}
      {scheduled !== undefined && (
        <Sure
          title={say.deleteTitle(say.nameOf(group))}
          action={say.deleteGroup}
          {...(members > 0 && { typed: String(members) })}
          run={() => ask(pathOf(accountId, segmentId), { method: 'DELETE' })}
          onDone={() => go({ accountId, path: ['groups'] })}
          onClose={() => setScheduled(undefined)}
        >
          <p>{say.deleteBody(members)}</p>
          {scheduled > 0 && <p>{say.deleteScheduled(scheduled)}</p>}
        </Sure>
      )}
    </>
  )
}
