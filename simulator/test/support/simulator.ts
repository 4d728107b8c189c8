import { sign } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { type Simulator, startSimulator } from '../../src/simulator.ts'
import { until } from './until.ts'

export const AGENT = 'parcel-service'

export function createDataDir(): string {
  const dataDir = mkdtempSync(join(tmpdir(), 'herald-simulator-'))
  after(() => rmSync(dataDir, { recursive: true, force: true }))
  return dataDir
}

/** A simulator in this process, on real sockets and with its own directory. It is stopped after the tests of the file. */
export async function startTestSimulator(options: { delayMs?: number; dataDir?: string } = {}): Promise<Simulator & Client> {
  const { delayMs = 0, dataDir = createDataDir() } = options
  const simulator = await startSimulator({
    dataDir,
    host: '127.0.0.1',
    port: undefined,
    smppPort: undefined,
    delayMs,
    stopWithStdin: false,
  })
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= simulator.stop()
    return stopped
  }
  after(stop)
  return { ...simulator, stop, ...(await createClient(simulator.url, simulator.carriersFile)) }
}

export type Response = { status: number; body: any; headers: Headers }
export type Client = Awaited<ReturnType<typeof createClient>>

export type Carriers = {
  simulator: { address: string; webhookToken: string; serviceAccount: Record<string, string> }
  'simulator-sms': { host: string; port: number; systemId: string; password: string }
}

/** A caller that knows only the file that the simulator writes for Herald. */
export async function createClient(url: string, carriersFile: string) {
  const carriers: Carriers = JSON.parse(readFileSync(carriersFile, 'utf8'))
  const token: string = (await requestToken(carriers)).body.access_token
  const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    send(method, `${url}${path}`, body, { authorization: `Bearer ${token}`, ...headers })
  const counts = async (): Promise<any> => (await call('GET', '/simulator/counts')).body
  return {
    carriers,
    token,
    call,
    sendMessage: (phone: string, messageId: string, message: unknown, agentId = AGENT) =>
      call('POST', `/v1/phones/${phone}/agentMessages?messageId=${messageId}&agentId=${agentId}`, message),
    /** Registers the address of a webhook, with the webhook token. */
    setWebhook: (webhookUrl: unknown) =>
      call('PUT', '/simulator/webhook', { url: webhookUrl }, { authorization: `Bearer ${carriers.simulator.webhookToken}` }),
    phone: async (phone: string): Promise<any[]> => (await call('GET', `/simulator/phones/${phone}`)).body.messages,
    ledger: async (): Promise<any[]> => (await call('GET', '/simulator/ledger?limit=10000')).body.entries,
    counts,
    /** Waits until nothing more happens by itself. */
    settled: () =>
      until('nothing is owed', async () => {
        const { owed } = await counts()
        return owed.steps + owed.webhooks + owed.deliverSm === 0
      }),
    faults: async (faults: unknown) => {
      const { status, body } = await call('PUT', '/simulator/faults', faults)
      if (status !== 200) throw new Error(body.error.message)
    },
  }
}

export async function send(method: string, url: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const json = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }
  const response = await fetch(url, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...json,
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text), headers: response.headers }
}

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Requests a token with a grant as in Google's documents; `claims` and `key` replace parts of it. */
export async function requestToken(carriers: Carriers, claims: Record<string, unknown> = {}, key?: string): Promise<Response> {
  const account = carriers.simulator.serviceAccount
  const now = Math.floor(Date.now() / 1000)
  const valid = {
    iss: account.client_email,
    aud: account.token_uri,
    scope: 'https://www.googleapis.com/auth/rcsbusinessmessaging',
    iat: now,
    exp: now + 3600,
  }
  const unsigned = `${encode({ alg: 'RS256', typ: 'JWT', kid: account.private_key_id })}.${encode({ ...valid, ...claims })}`
  const assertion = `${unsigned}.${sign('sha256', Buffer.from(unsigned), key ?? account.private_key ?? '').toString('base64url')}`
  const form = new URLSearchParams({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion })
  return await send('POST', account.token_uri ?? '', form.toString(), { 'content-type': 'application/x-www-form-urlencoded' })
}
