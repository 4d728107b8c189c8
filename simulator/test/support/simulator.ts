import { sign } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { type Simulator, startSimulator } from '../../src/simulator.ts'

export const AGENT = 'parcel-service'

export function createDataDir(): string {
  const dataDir = mkdtempSync(join(tmpdir(), 'herald-simulator-'))
  after(() => rmSync(dataDir, { recursive: true, force: true }))
  return dataDir
}

/** A simulator in this process, on real sockets and a directory of its own; stopped when the test file ends. */
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

export type Answer = { status: number; body: any; headers: Headers }
export type Client = Awaited<ReturnType<typeof createClient>>

export type Carriers = {
  simulator: { address: string; webhookToken: string; serviceAccount: Record<string, string> }
  'simulator-sms': { host: string; port: number; systemId: string; password: string }
}

/** One who calls the simulator, made from nothing but the file that it writes for Herald. */
export async function createClient(url: string, carriersFile: string) {
  const carriers: Carriers = JSON.parse(readFileSync(carriersFile, 'utf8'))
  const token: string = (await requestToken(carriers)).body.access_token
  const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    send(method, `${url}${path}`, body, { authorization: `Bearer ${token}`, ...headers })
  return {
    carriers,
    token,
    call,
    sendMessage: (phone: string, messageId: string, message: unknown, agentId = AGENT) =>
      call('POST', `/v1/phones/${phone}/agentMessages?messageId=${messageId}&agentId=${agentId}`, message),
    /** Names the address that gets the events. Proves itself by the webhook token. */
    setWebhook: (webhookUrl: unknown) =>
      call('PUT', '/simulator/webhook', { url: webhookUrl }, { authorization: `Bearer ${carriers.simulator.webhookToken}` }),
    phone: async (phone: string): Promise<any[]> => (await call('GET', `/simulator/phones/${phone}`)).body.messages,
    ledger: async (): Promise<any[]> => (await call('GET', '/simulator/ledger?limit=10000')).body.entries,
    faults: async (faults: unknown) => {
      const answer = await call('PUT', '/simulator/faults', faults)
      if (answer.status !== 200) throw new Error(answer.body.error.message)
    },
  }
}

export async function send(method: string, url: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  const json = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }
  const answer = await fetch(url, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...json,
  })
  const text = await answer.text()
  return { status: answer.status, body: text === '' ? undefined : JSON.parse(text), headers: answer.headers }
}

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** A grant as Google's documents describe it; `claims` and `key` replace what is right in it. */
export async function requestToken(carriers: Carriers, claims: Record<string, unknown> = {}, key?: string): Promise<Answer> {
  const account = carriers.simulator.serviceAccount
  const now = Math.floor(Date.now() / 1000)
  const right = {
    iss: account.client_email,
    aud: account.token_uri,
    scope: 'https://www.googleapis.com/auth/rcsbusinessmessaging',
    iat: now,
    exp: now + 3600,
  }
  const unsigned = `${encode({ alg: 'RS256', typ: 'JWT', kid: account.private_key_id })}.${encode({ ...right, ...claims })}`
  const assertion = `${unsigned}.${sign('sha256', Buffer.from(unsigned), key ?? account.private_key ?? '').toString('base64url')}`
  const form = new URLSearchParams({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion })
  return await send('POST', account.token_uri ?? '', form.toString(), { 'content-type': 'application/x-www-form-urlencoded' })
}
