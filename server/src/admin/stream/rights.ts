import type { Executor } from '../../db/pool.ts'
import { roleIn } from '../../people/roles.ts'
import { findSessionRights } from '../../people/sessions.ts'
import { findTokenRights } from '../../people/tokens.ts'
import { type Stream, serverSent } from './stream.ts'

/** Ends the streams whose session or token is no longer valid, or has no role in the account any more; notes changed roles of the others. */
export async function checkRights(db: Executor, streams: Iterable<Stream>): Promise<void> {
  const checked = [...streams]
  const sessionIds = checked.flatMap(({ credentials }) => ('sessionId' in credentials ? credentials.sessionId : []))
  const tokenIds = checked.flatMap(({ credentials }) => ('tokenId' in credentials ? credentials.tokenId : []))
  const sessions = sessionIds.length > 0 ? await findSessionRights(db, [...new Set(sessionIds)]) : undefined
  const tokens = tokenIds.length > 0 ? await findTokenRights(db, [...new Set(tokenIds)]) : undefined
  const checkedAt = performance.now()
  for (const stream of checked) {
    const { credentials, accountId, connection } = stream
    const rights = 'sessionId' in credentials ? sessions?.get(credentials.sessionId) : tokens?.get(credentials.tokenId)
    const role = rights && roleIn(rights, accountId)
    if (role === undefined) connection.end(serverSent(JSON.stringify({ code: 'RCS_UNAUTHORIZED' }), { event: 'end' }))
    else Object.assign(stream, { role, checkedAt })
  }
}
