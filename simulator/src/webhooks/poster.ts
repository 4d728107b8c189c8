import { Agent, request } from 'undici'

const TIMEOUT_MS = 10_000

export type Poster = {
  /** The status and text of the answer; status 0 where there was none, with what went wrong as the text. */
  post: (to: string, body: string, headers?: Record<string, string>) => Promise<{ status: number; text: string }>
  close: () => Promise<void>
}

export function createPoster(connections: number): Poster {
  // The address is one that the owner of this machine gave, mostly this machine itself under a certificate of its own making; the
  // signature tells the other side who speaks. So the certificate is not held against a list of authorities.
  const agent = new Agent({
    connections,
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
    connect: { timeout: TIMEOUT_MS, rejectUnauthorized: false },
  })
  return {
    post: async (to, body, headers = {}) => {
      try {
        const answer = await request(to, {
          method: 'POST',
          dispatcher: agent,
          headers: { 'content-type': 'application/json', ...headers },
          body,
          signal: AbortSignal.timeout(TIMEOUT_MS),
        })
        return { status: answer.statusCode, text: await answer.body.text() }
      } catch (error) {
        return { status: 0, text: error instanceof Error ? error.message : String(error) }
      }
    },
    close: () => agent.destroy(),
  }
}
