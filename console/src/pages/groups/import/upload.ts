import { ApiProblem, problemOf, urlOf } from '../../../app/api.ts'
import * as importWords from '../../../words/en-import.ts'
import type { Imported } from './rewrite.ts'

type Upload = {
  path: string
  /** The file, perhaps with another header. The browser reads it from the disk while it sends it. */
  body: Blob
  signal: AbortSignal
  /** Called with the share sent so far, and with undefined when Herald has all of it. */
  onShare: (share: number | undefined) => void
}

/** Sends a file to be imported. Not by fetch, which does not say how much of it was sent. Throws an ApiProblem. */
export async function upload({ path, body, signal, onShare }: Upload): Promise<Imported> {
  // The person may have cancelled the import before it came to this.
  signal.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<Imported>()
  const request = new XMLHttpRequest()
  request.open('PUT', urlOf(path))
  request.setRequestHeader('content-type', 'text/csv')
  request.upload.onprogress = ({ loaded }) => onShare(loaded / body.size)
  request.upload.onload = () => onShare(undefined)
  request.onload = () => resolve(resultOf(request))
  request.onerror = request.onabort = reject
  signal.addEventListener('abort', () => request.abort())
  request.send(body)
  try {
    return await promise
  } catch (error) {
    if (error instanceof ApiProblem) throw error
    // A file that was changed or removed meanwhile looks like a broken connection. A proxy may respond with a page of its own.
    await body
      .slice(-1)
      .arrayBuffer()
      .catch(() => {
        throw unreadable()
      })
    throw new ApiProblem(0, { code: 'NO_RESPONSE' })
  }
}

async function resultOf(request: XMLHttpRequest): Promise<Imported> {
  const headers = { 'content-type': request.getResponseHeader('content-type') ?? '' }
  const response = new Response(request.responseText, { status: request.status, headers })
  if (!response.ok) throw await problemOf(response)
  return await response.json()
}

/** Its sentence stands for the code. */
export const unreadable = () => new ApiProblem(400, { code: 'FILE', details: [{ path: '', reason: importWords.unreadable }] })
