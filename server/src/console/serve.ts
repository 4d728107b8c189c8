import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../errors.ts'
import { logOf } from '../http/log.ts'
import { createConsoleFiles, HEADERS } from './files.ts'

const NO_BUNDLER =
  'The console cannot be built here: its bundler cannot run. Run "npm run build" where it can, and copy console/dist here, or use the API.'
const FAILED = 'The console could not be built. The log of the service says why. The API is not affected.'

/** Serves the console at /console. */
export function serveConsole(app: FastifyInstance, files = createConsoleFiles()): void {
  let logged: unknown
  async function send(path: string, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const all = await files().catch((error: unknown) => {
      // Requests get the same error until the next attempt.
      if (error !== logged) logOf(request).error({ err: error }, 'the console cannot be built')
      logged = error
      throw new ApiError('RCS_UNAVAILABLE', { details: [{ path: '', reason: isBundlerMissing(error) ? NO_BUNDLER : FAILED }] })
    })
    const sendFile = all.get(path)
    if (sendFile === undefined) throw new ApiError('RCS_NOT_FOUND')
    return sendFile(request, reply)
  }
  app.register(async (pages) => {
    // Errors of these routes get the policy, too.
    pages.addHook('onSend', async (_request, reply) => {
      reply.headers(HEADERS)
    })
    pages.get('/console', { schema: { hide: true } }, async (request, reply) => await send('', request, reply))
    // The links of the page are relative, so that they work below a prefix that a proxy adds. They resolve from /console, not from /console/.
    pages.get('/console/', { schema: { hide: true } }, async (_request, reply) => reply.redirect('../console', 308))
    pages.get<{ Params: { '*': string } }>(
      '/console/*',
      { schema: { hide: true } },
      async (request, reply) => await send(request.params['*'], request, reply),
    )
  })
}

/** Whether esbuild or its program for this platform is missing, or console/build.ts itself, as in an image that has only console/dist. */
function isBundlerMissing(error: unknown): boolean {
  const { name, code } = error as { name?: string; code?: string }
  return name === 'BundlerMissing' || code === 'ERR_MODULE_NOT_FOUND'
}
