import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'

// Below those that systems give out by themselves (32768 and up on Linux, 49152 on others): another test that asks for any port must not get
// this one between the moment it is found and the moment it is used.
const [FIRST, LAST] = [12_000, 32_000]

/**
 * A port of this machine that nobody listens on, and that no other test is given while this process lives. A service that takes seconds to
 * start was taken for ready when another test's server had got its port meanwhile.
 */
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
