// Asks a running Node about its memory, over the inspector that it was started with: nothing of the service has to know of it.

/** `held`: what JavaScript and its buffers still hold when everything else has been cleared up. `resident`: what the system has given. */
export type Memory = { held: number; resident: number }

// What one collection finds free can free more: finalizers run after it.
const COLLECTIONS = 3

export async function collectAndLook(inspector: string): Promise<Memory> {
  const session = await openSession(inspector)
  let least = Number.POSITIVE_INFINITY
  let resident = 0
  for (let n = 0; n < COLLECTIONS; n++) {
    await session.ask('HeapProfiler.collectGarbage')
    const answer = await session.ask('Runtime.evaluate', { expression: 'process.memoryUsage()', returnByValue: true })
    const { heapUsed, external, rss } = (answer as { result: { value: NodeJS.MemoryUsage } }).result.value
    least = Math.min(least, heapUsed + external)
    resident = rss
  }
  session.close()
  return { held: least, resident }
}

type Answer = { id: number; result?: unknown; error?: { message: string } }

async function openSession(inspector: string) {
  const socket = new WebSocket(inspector)
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve, { once: true })
    socket.addEventListener('error', () => reject(new Error(`no inspector at ${inspector}`)), { once: true })
  })
  const waiting = new Map<number, (answer: Answer) => void>()
  socket.addEventListener('message', ({ data }) => {
    const answer = JSON.parse(String(data)) as Answer
    waiting.get(answer.id)?.(answer)
    waiting.delete(answer.id)
  })
  let asked = 0
  async function ask(method: string, params = {}): Promise<unknown> {
    asked += 1
    const id = asked
    const answered = new Promise<Answer>((resolve) => waiting.set(id, resolve))
    socket.send(JSON.stringify({ id, method, params }))
    const { result, error } = await answered
    if (error !== undefined) throw new Error(`${method}: ${error.message}`)
    return result
  }
  return { ask, close: () => socket.close() }
}
