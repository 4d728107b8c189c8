import type { FastifyInstance } from 'fastify'
import { callerOf } from '../http/guard.ts'
import { sealListCursors } from '../http/sealed-cursors.ts'
import { roleOf } from './guard.ts'

/** The end of a page of a list. The cursor of the event feed is encrypted anyway, and stands elsewhere. */
const NEXT_CURSOR = /(?<="nextCursor":")[\w-]+(?="\}$)/

/**
 * Encrypts the cursors of lists for viewers. A cursor has the values of the last row, such as a phone number. A viewer must neither read a
 * number there, nor find one with forged cursors.
 */
export function sealCursors(app: FastifyInstance, secret: Buffer): void {
  const { seal, open } = sealListCursors(secret, 'viewer')
  app.addHook('preValidation', async (request) => {
    const query = request.query as { cursor?: unknown }
    if (typeof query.cursor === 'string' && roleOf(request) === 'viewer') query.cursor = open(callerOf(request).accountId, query.cursor)
  })
  app.addHook('onSend', async (request, _reply, payload) => {
    const isText = typeof payload === 'string' || Buffer.isBuffer(payload)
    if (!isText || request.admin === undefined || request.caller === undefined || roleOf(request) !== 'viewer') return payload
    const { accountId } = request.caller
    return String(payload).replace(NEXT_CURSOR, (cursor) => seal(accountId, cursor))
  })
}
