import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

// Below those that systems give out by themselves (32768 and up on Linux, 49152 on others): another test that asks for any port must not get
// this one between the moment it is found and the moment it is used.
const [FIRST, LAST] = [12_000, 32_000]

/** A port of this machine that nobody listens on. */
export async function freePort(): Promise<number> {
  const port = randomInt(FIRST, LAST)
  const server = createServer()
  try {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    server.close()
    await once(server, 'close')
    return port
  } catch {
    return await freePort()
  }
}
