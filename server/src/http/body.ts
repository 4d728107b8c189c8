import type { IncomingMessage } from 'node:http'
import { ApiError } from '../errors.ts'

/** Calls `done` once, with the whole body or with the error. http/request-timeout.ts ends a request that takes too long. */
export function readBody(request: IncomingMessage, limitBytes: number, done: (error: unknown, body: Buffer) => void): void {
  const chunks: Buffer[] = []
  let bytes = 0
  let isOver = false
  function end(error?: unknown): void {
    if (isOver) return
    isOver = true
    // Almost every body arrives in one chunk, which need not be copied.
    done(error, chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(error === undefined ? chunks : []))
    chunks.length = 0
  }
  if (Number(request.headers['content-length']) > limitBytes) {
    // Nothing is buffered: once the response is sent, Node reads the body and discards it.
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
