import type { IncomingMessage } from 'node:http'
import { ApiError } from '../errors.ts'

/** Calls back once, with the whole body or with what went wrong. Node ends a request that takes too long. */
export function readBody(request: IncomingMessage, limitBytes: number, done: (error: unknown, body: Buffer) => void): void {
  const chunks: Buffer[] = []
  let bytes = 0
  let isOver = false
  function end(error?: unknown): void {
    if (isOver) return
    isOver = true
    // Almost every body comes in one piece, which need not be copied.
    done(error, chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(error === undefined ? chunks : []))
    chunks.length = 0
  }
  if (Number(request.headers['content-length']) > limitBytes) {
    // No byte of it is kept: Node reads the body and forgets it, once the response is sent.
    end(tooLarge())
    return
  }
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > limitBytes) end(tooLarge())
    else chunks.push(chunk)
  })
  request.on('end', end)
  request.on('error', end)
}

function tooLarge(): ApiError {
  return new ApiError('RCS_PAYLOAD_TOO_LARGE')
}
