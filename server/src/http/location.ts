import type { FastifyRequest } from 'fastify'

/** The path of what a request to a list has created, below the same prefix: callers use /v1, and people /admin/v1/accounts/{accountId}. */
export function locationOf({ routeOptions, params }: FastifyRequest, id: string | number): string {
  const { accountId } = params as { accountId?: number }
  return `${routeOptions.url?.replace(':accountId', String(accountId))}/${id}`
}
