// Reads responses of HTTP/1.1 from the bytes of a connection.

export type Head = {
  status: number
  headers: Map<string, string>
  /** Takes the whole response. */
  bodyOf: (response: Buffer) => Buffer
}

const BLANK_LINE = '\r\n\r\n'

/** Returns where the final response starts: interim ones, with a status of 1xx, come before it. */
function skipInterim(received: Buffer): number {
  let at = 0
  while (/^HTTP\/1\.1 1\d\d/.test(received.toString('latin1', at, at + 12))) {
    const end = received.indexOf(BLANK_LINE, at)
    if (end === -1) return at
    at = end + BLANK_LINE.length
  }
  return at
}

/** Undefined if the head is incomplete, or is not HTTP. */
export function readHead(received: Buffer): (Head & { from: number }) | undefined {
  const start = skipInterim(received)
  const end = received.indexOf(BLANK_LINE, start)
  if (end === -1) return undefined
  const [first = '', ...lines] = received.toString('latin1', start, end).split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1])
  if (!Number.isInteger(status) || status < 200) return undefined
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
    }),
  )
  const from = end + BLANK_LINE.length
  const isChunked = headers.get('transfer-encoding') === 'chunked'
  return { status, headers, from, bodyOf: (response) => (isChunked ? joinChunks(response, from) : response.subarray(from)) }
}

/** `at`: where the response ends, undefined if it is incomplete. `needed`: the number of bytes below which it is certainly incomplete. */
export function responseEnd(received: Buffer, method: string, isClosed: boolean): { at: number | undefined; needed: number } {
  const head = readHead(received)
  if (head === undefined) return { at: undefined, needed: 0 }
  const { status, headers, from } = head
  if (method === 'HEAD' || status === 204 || status === 304) return { at: from, needed: 0 }
  const length = headers.get('content-length')
  if (length !== undefined) {
    const end = from + Number(length)
    return { at: received.length >= end ? end : undefined, needed: end }
  }
  if (headers.get('transfer-encoding') === 'chunked') {
    const end = chunksEnd(received, from)
    return { at: end, needed: end === undefined ? received.length + 1 : 0 }
  }
  return { at: isClosed ? received.length : undefined, needed: 0 }
}

/** Each complete chunk, and where it ends. The last one is empty. */
function* chunksIn(received: Buffer, from: number): Generator<{ chunk: Buffer; end: number }> {
  for (let at = from; ; ) {
    const lineEnd = received.indexOf('\r\n', at)
    if (lineEnd === -1) return
    const size = Number.parseInt(received.toString('latin1', at, lineEnd), 16)
    const begin = lineEnd + 2
    const end = begin + size + 2
    if (Number.isNaN(size) || received.length < end) return
    yield { chunk: received.subarray(begin, begin + size), end }
    if (size === 0) return
    at = end
  }
}

function chunksEnd(received: Buffer, from: number): number | undefined {
  for (const { chunk, end } of chunksIn(received, from)) if (chunk.length === 0) return end
  return undefined
}

function joinChunks(response: Buffer, from: number): Buffer {
  return Buffer.concat([...chunksIn(response, from)].map(({ chunk }) => chunk))
}
