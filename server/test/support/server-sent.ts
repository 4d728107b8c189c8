import { type IncomingMessage, request } from 'node:http'
import { after } from 'node:test'
import { until } from './until.ts'

/** An event as it was received. `event`: undefined for events of the log. */
export type ServerSent = { event: string | undefined; id: string | undefined; data: any }

export type TestStream = {
  status: number
  headers: IncomingMessage['headers']
  /** The body of a response that is not a stream. */
  body: () => any
  received: ServerSent[]
  /** The events of the log. */
  logged: () => ServerSent[]
  comments: () => number
  /** The id that the browser would send when it connects again. */
  lastId: () => string | undefined
  isClosed: () => boolean
  /** Waits for an event with this name. */
  next: (event: string) => Promise<ServerSent>
  close: () => void
}

/** Reads a stream of server-sent events as a browser does, until the test file ends. */
export async function openStream(url: string, headers: Record<string, string>): Promise<TestStream> {
  const sent = request(url, { headers, agent: false }).end()
  // A reset ends it, too.
  sent.on('error', () => {})
  const response = await new Promise<IncomingMessage>((resolve, reject) => sent.on('response', resolve).on('error', reject))
  after(() => sent.destroy())
  let [rest, comments, isClosed] = ['', 0, false]
  let lastId: string | undefined
  const received: ServerSent[] = []
  response.on('error', () => {})
  response.on('close', () => {
    isClosed = true
  })
  response.setEncoding('utf8').on('data', (chunk: string) => {
    const blocks = (rest + chunk).split('\n\n')
    rest = blocks.pop() as string
    for (const block of blocks) {
      const fields = new Map(block.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]))
      if (fields.has('')) comments += 1
      lastId = fields.get('id') ?? lastId
      if (fields.has('data'))
        received.push({ event: fields.get('event'), id: fields.get('id'), data: JSON.parse(fields.get('data') as string) })
    }
  })
  if (response.statusCode !== 200) await until('the response has ended', () => isClosed)
  return {
    status: response.statusCode as number,
    headers: response.headers,
    body: () => JSON.parse(rest),
    received,
    logged: () => received.filter(({ event }) => event === undefined),
    comments: () => comments,
    lastId: () => lastId,
    isClosed: () => isClosed,
    next: (name) => until(`there is an event ${name}`, () => received.find(({ event }) => event === name)),
    close: () => void sent.destroy(),
  }
}
