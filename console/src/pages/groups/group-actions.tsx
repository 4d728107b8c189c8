import { useState } from 'preact/hooks'
import { ask } from '../../app/api.ts'
import { go } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { AsCurl } from '../../kit/as-curl.tsx'
import { Button } from '../../kit/controls.tsx'
import { Sure } from '../../kit/sure.tsx'
import * as say from '../../words/en-groups.ts'
import { ImportLink } from './links.tsx'
import { NameGroup } from './name-group.tsx'
import { pathOf, type Segment } from './segments.ts'

type Props = { group: Segment; onChanged: () => void }

/** What can be done with a group as a whole. A viewer only sees it. */
export function GroupActions({ group, onChanged }: Props) {
  const { accountId, role } = useFrame().account
  const [open, setOpen] = useState<'rename' | 'delete'>()
  const close = () => setOpen(undefined)
  const { segmentId, members } = group
  return (
    <>
      <AsCurl path={`segments/${segmentId}/members`} />
      {role !== 'viewer' && (
        <>
          <Button icon="pencil" onClick={() => setOpen('rename')}>
            {say.rename}
          </Button>
          <Button icon="trash-2" kind="danger" onClick={() => setOpen('delete')}>
            {say.deleteGroup}
          </Button>
          <ImportLink into={segmentId} />
        </>
      )}
      {open === 'rename' && <NameGroup title={say.rename} group={group} onDone={onChanged} onClose={close} />}
      {/* The number of members has to be typed, so that nobody deletes thousands by two clicks. */}
      {open === 'delete' && (
        <Sure
          title={say.deleteTitle(say.nameOf(group))}
          action={say.deleteGroup}
          {...(members > 0 && { typed: String(members) })}
          run={() => ask(pathOf(accountId, segmentId), { method: 'DELETE' })}
          onDone={() => go({ accountId, path: ['groups'] })}
          onClose={close}
        >
          <p>{say.deleteBody(members)}</p>
        </Sure>
      )}
    </>
  )
}
