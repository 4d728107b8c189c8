import type { RouteOptions } from 'fastify'
import type { ErrorCode } from '../errors.ts'
import { responsesOf } from '../http/error-responses.ts'

type Described = { description?: string; security?: object[]; response?: Record<string, { description?: string }> }

/** Describes in the OpenAPI document which credentials and role a route needs, and what the guard refuses. The routes of /v1 describe what their own guard refuses. */
export function describeGuard({ config = {}, schema, url, method }: RouteOptions): void {
  // A HEAD route has the schema of its GET route.
  if (schema === undefined || method === 'HEAD') return
  const { role, needsPassword, needsSession, scope, endsSending } = config
  const described = schema as Described
  if (config.public) {
    described.security = []
    return
  }
  if (needsSession) described.security = [{ session: [] }]
  const anyRole = needsSession ? undefined : 'Needs a session or a token.'
  described.description = inSentences(
    described.description,
    role === undefined ? anyRole : `Needs the role \`${role}\`.`,
    needsSession ? 'Needs a session; a token is refused.' : undefined,
    needsPassword ? 'People must have given the password within the last ten minutes.' : undefined,
  )
  const refusals: ErrorCode[] = ['RCS_CROSS_SITE']
  if (role !== undefined) refusals.push('RCS_ROLE')
  if (needsPassword) refusals.push('RCS_PASSWORD_REQUIRED')
  if (scope === 'send' && !endsSending) refusals.push('RCS_ACCOUNT_SUSPENDED', 'RCS_MODULE_NOT_AVAILABLE')
  described.response = { ...described.response, ...responsesOf(refusals) }
  if (!url.includes(':accountId')) return
  const { 404: noAccount } = responsesOf(['RCS_ACCOUNT_NOT_FOUND'])
  const description = [described.response[404]?.description, noAccount?.description].filter((text) => text !== undefined).join('\n\n')
  described.response[404] = { ...noAccount, description }
}

const inSentences = (...texts: (string | undefined)[]) => texts.filter((text) => text !== undefined).join(' ')
