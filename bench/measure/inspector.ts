// Asks a running Node process about its memory, over the inspector that it was started with. The service does not know of it.

/** In bytes. `held`: by JavaScript and its buffers after a garbage collection. `resident`: given to the process by the system. */
export type Memory = { held: number; resident: number }

// A collection can make more collectable, since finalizers run after it.
const COLLECTIONS = 3

export async function collectAndLook(inspector: string): Promise<Memory> {
  const session = await openSession(inspector)
  let held = Number.POSITIVE_INFINITY
  let resident = 0
  for (let n = 0; n < COLLECTIONS; n++) {
    await session.ask('HeapProfiler.collectGarbage')
    const evaluated = await session.ask('Runtime.evaluate', { expression: 'process.memoryUsage()', returnByValue: true })
    const { heapUsed, external, rss } = (evaluated as { result: { value: NodeJS.MemoryUsage } }).result.value
    held = Math.min(held, heapUsed + external)
    resident = rss
  }
  session.close()
  return { held, resident }
}

type Response = { id: number; result?: unknown; error?: { message: string } }

async function openSession(inspector: string) {
  const socket = new WebSocket(inspector)
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve, { once: true })
    socket.addEventListener('error', () => reject(new Error(`no inspector at ${inspector}`)), { once: true })
  })
  const pending = new Map<number, (response: Response) => void>()
  socket.addEventListener('message', ({ data }) => {
    const response = JSON.parse(String(data)) as Response
    pending.get(response.id)?.(response)
    pending.delete(response.id)
  })
  let asked = 0
  async function ask(method: string, params = {}): Promise<unknown> {
    asked += 1
    const id = asked
    const responded = new Promise<Response>((resolve) => pending.set(id, resolve))
    socket.send(JSON.stringify({ id, method, params }))
    const { result, error } = await responded
    if (error !== undefined) throw new Error(`${method}: ${error.message}`)
    return result
  }
  return { ask, close: () => socket.close() }
}
