import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'

// Below the ephemeral ports (from 32768 on Linux, 49152 elsewhere): a test that listens on port 0 must not get this port before it is used.
const [FIRST, LAST] = [12_000, 32_000]

/** Returns a free port that no other test gets while this process runs. Otherwise a slow start could find another test's server on its port. */
export async function freePort(): Promise<number> {
  const port = randomInt(FIRST, LAST)
  // UDP has ports of its own, which nobody else here uses: holding this one is what keeps other tests off.
  const claim = createSocket('udp4')
  const server = createServer()
  try {
    claim.bind({ port, address: '127.0.0.1', exclusive: true })
    await once(claim, 'listening')
    claim.unref()
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    server.close()
    await once(server, 'close')
    return port
  } catch {
    return await freePort()
  }
}
