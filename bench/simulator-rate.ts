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

export async function measureNetwork(count: number): Promise<number> {
  const simulator = await startSimulator()
  const peer = await startPeer('webhook-peer.ts')
  await putWebhook(simulator, `http://127.0.0.1:${peer.port}`)
  const [settings] = readCarriers(simulator.carriersFile).rcs
  if (settings === undefined) throw new Error('the simulator is an RCS network')
  const token = await createAccessTokens(settings.serviceAccount, createHttp(settings.address, 1)).renew()
  const connections = await openConnections(settings.address, CONNECTIONS, 200)
  let posted = 0
  async function post(): Promise<void> {
    posted += 1
    const path = `/v1/phones/+4850${String(posted % 100_000).padStart(5, '0')}10/agentMessages?messageId=${randomUUID()}&agentId=bench`
    await connections.send(postRequest(path, { Authorization: `Bearer ${token}` }, BODY))
  }
  async function all(amount: number): Promise<number> {
    const from = performance.now()
    await inTurn(amount, CONNECTIONS, post)
    await until(() => owesNothing(simulator))
    return (amount * 1_000) / (performance.now() - from)
  }
  await all(count / 2)
  const perSecond = await all(count)
  connections.close()
  await peer.stop()
  await simulator.stop()
  return perSecond
}

/** All receipts were taken. */
export async function owesNothing({ url }: SimulatorProcess): Promise<boolean> {
  const counts = (await (await fetch(`${url}/simulator/counts`)).json()) as { owed: Record<string, number> }
  return Object.values(counts.owed).every((count) => count === 0)
}
