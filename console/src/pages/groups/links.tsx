import { linkTo } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { ButtonLink } from '../../kit/controls.tsx'
import * as importWords from '../../words/en-import.ts'

/** Leads to the import of a file into a group, or into a new one. */
export function ImportLink({ into }: { into?: number }) {
  const { accountId } = useFrame().account
  const query = { into: into?.toString() }
  return (
    <ButtonLink kind="primary" icon="upload" href={linkTo({ accountId, path: ['groups', 'new'], query })}>
      {importWords.open}
    </ButtonLink>
  )
}
