import { randomUUID } from 'node:crypto'
import { createAccessTokens } from '../server/src/carriers/google-rbm/access-token.ts'
import { createHttp } from '../server/src/carriers/google-rbm/http.ts'
import { readCarriers } from '../server/src/carriers/settings.ts'
import { openConnections, postRequest } from './http-load.ts'
import { inTurn, until } from './measure.ts'
import { type SimulatorProcess, startPeer, startSimulator } from './processes.ts'
import { putWebhook } from './service.ts'

// What the simulated network takes and reports by itself, where whoever sends and whoever takes the receipts does nothing else: what no service
// beside it can surpass.

const CONNECTIONS = 64
const BODY = JSON.stringify({
  contentMessage: { text: 'Your order is on its way.' },
  messageTrafficType: 'TRANSACTION',
  expireTime: new Date(Date.now() + 86_400_000).toISOString(),
})

/** `run`: how many a second it takes of so many, until the last receipt is taken. */
export type Network = { run: (count: number) => Promise<number>; stop: () => Promise<void> }

/** `delayMs`: the time between the steps of a message. */
export async function startNetwork(delayMs: number): Promise<Network> {
  const simulator = await startSimulator({ delayMs })
  const peer = await startPeer('webhook-peer.ts')
  await putWebhook(simulator, `http://127.0.0.1:${peer.port}`)
  const [settings] = readCarriers(simulator.carriersFile).rcs
  if (settings === undefined) throw new Error('the simulator is an RCS network')
  const { address, serviceAccount } = settings
  const tokens = createAccessTokens(serviceAccount, createHttp(address, 1))
  let posted = 0
  function request(token: string): string {
    posted += 1
    const path = `/v1/phones/+4850${String(posted % 100_000).padStart(5, '0')}10/agentMessages?messageId=${randomUUID()}&agentId=bench`
    return postRequest(path, { Authorization: `Bearer ${token}` }, BODY)
  }
  async function run(count: number): Promise<number> {
    const token = await tokens.renew()
    const connections = await openConnections(address, CONNECTIONS, 200)
    const from = performance.now()
    await inTurn(count, CONNECTIONS, () => connections.send(request(token)))
    await until(() => owesNothing(simulator))
    const perSecond = (count * 1_000) / (performance.now() - from)
    connections.close()
    return perSecond
  }
  async function stop(): Promise<void> {
    await peer.stop()
    await simulator.stop()
  }
  return { run, stop }
}

/** All receipts were taken. */
export async function owesNothing({ url }: SimulatorProcess): Promise<boolean> {
  const counts = (await (await fetch(`${url}/simulator/counts`)).json()) as { owed: Record<string, number> }
  return Object.values(counts.owed).every((count) => count === 0)
}
