import { randomUUID } from 'node:crypto'
import { createAccessTokens } from '../../server/src/carriers/google-rbm/access-token.ts'
import { createHttp } from '../../server/src/carriers/google-rbm/http.ts'
import { readCarriers } from '../../server/src/carriers/settings.ts'
import { openConnections, postRequest } from '../load/connections.ts'
import { cpuMs } from '../measure/process-usage.ts'
import { inParallel, type Rate, timed, until } from '../measure/rounds.ts'
import { randomRecipient } from './accounts.ts'
import { putWebhook, type SimulatorProcess, startPeer, startSimulator } from './processes.ts'
import { owesNothing } from './service.ts'

// The simulated network alone, with a client and a webhook that do nothing else. No service can be faster than that.

export const CONNECTIONS = 64

/** A message in the format of Google's RBM API. */
export function rbmRequest(token: string): string {
  const path = `/v1/phones/${randomRecipient()}/agentMessages?messageId=${randomUUID()}&agentId=bench`
  return postRequest(path, { Authorization: `Bearer ${token}` }, RBM_BODY)
}

const RBM_BODY = JSON.stringify({
  contentMessage: { text: 'Your order is on its way.', suggestions: [{ reply: { text: 'Thanks', postbackData: 'thanks' } }] },
  messageTrafficType: 'TRANSACTION',
  expireTime: new Date(Date.now() + 86_400_000).toISOString(),
})

export function rbmSettingsOf({ carriersFile }: SimulatorProcess) {
  const [settings] = readCarriers(carriersFile).rcs
  if (settings === undefined) throw new Error('the simulator has no RCS network')
  return settings
}

/** `run`: takes so many messages, until the last receipt is accepted. */
type Network = { run: (count: number) => Promise<Rate>; stop: () => Promise<void> }

export async function startNetwork(delayMs: number): Promise<Network> {
  const simulator = await startSimulator({ delayMs })
  const peer = await startPeer('receipts')
  await putWebhook(simulator, peer.url)
  const { address, serviceAccount } = rbmSettingsOf(simulator)
  const tokens = createAccessTokens(serviceAccount, createHttp(address, 1))
  async function run(count: number): Promise<Rate> {
    const token = await tokens.renew()
    const connections = await openConnections(address, CONNECTIONS, 200)
    const rate = await timed(
      count,
      () => ({ simulator: cpuMs(simulator.child) }),
      async () => {
        await inParallel(count, CONNECTIONS, () => connections.send(rbmRequest(token)))
        await until(() => owesNothing(simulator))
      },
    )
    connections.close()
    return rate
  }
  async function stop(): Promise<void> {
    await peer.stop()
    await simulator.stop()
  }
  return { run, stop }
}
