import { lookup } from 'node:dns/promises'
import type { FastifyInstance } from 'fastify'
import { OperatorError } from '../errors.ts'
import { listeningUrl } from './server.ts'

const REASONS: Record<string, string> = {
  EADDRINUSE: 'the port is in use by another program',
  EACCES: 'permission denied',
  EADDRNOTAVAIL: 'this machine has no such address',
  ENOTFOUND: 'there is no such host',
}

/** Returns the URL that the server listens on. `variables` names the settings that the operator would change if that fails. */
export async function listen(server: FastifyInstance, { host, port }: { host: string; port: number }, variables: string): Promise<string> {
  try {
    await server.listen({ host: await listeningHost(host), port })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const message = `Can't listen on ${host} port ${port}: ${REASONS[code ?? ''] ?? code} (${variables}).`
    throw Object.assign(new OperatorError(message), { cause: error })
  }
  return listeningUrl(server)
}

/**
 * For the name localhost, Fastify opens a second server on the other address family. That server lacks Herald's handlers, and would keep its
 * certificate on a reload. Given an address, Fastify opens one server.
 */
async function listeningHost(host: string): Promise<string> {
  if (host !== 'localhost') return host
  const { address } = await lookup(host, { family: 4 }).catch(() => lookup(host))
  return address
}

/** Whether `listen` failed because the port is taken. */
export function isPortTaken(error: unknown): boolean {
  return error instanceof OperatorError && (error.cause as NodeJS.ErrnoException | undefined)?.code === 'EADDRINUSE'
}
