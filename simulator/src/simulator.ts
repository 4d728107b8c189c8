import type { Server } from 'node:net'
import { createFaults } from './faults.ts'
import { refusal } from './http/responses.ts'
import { createHttpServer } from './http/server.ts'
import { type Options, StartError } from './options.ts'
import { createLedger } from './phones/ledger.ts'
import { createMessages } from './phones/messages.ts'
import { createOffline } from './phones/offline.ts'
import { createControlRoutes } from './phones/routes.ts'
import { createSteps } from './phones/steps.ts'
import { createRbmRoutes } from './rbm/routes.ts'
import { createTokens } from './rbm/tokens.ts'
import { createOutbox } from './smpp/outbox.ts'
import { createSmppServer } from './smpp/server.ts'
import { createReceipts, createSubmits } from './smpp/submits.ts'
import { loadIdentity, writeCarriersFile } from './state/identity.ts'
import { openStore, type Store } from './state/store.ts'
import { createWebhooks } from './webhooks/webhooks.ts'

export type Simulator = { url: string; smppPort: number; carriersFile: string; stop: () => Promise<void> }

type Parts = ReturnType<typeof assemble>

/** Creates the parts and starts them: first the ports, then the pending work. */
export async function startSimulator(options: Options): Promise<Simulator> {
  const store = await openStore(options.dataDir)
  let url = ''
  const parts = assemble(store, options, () => `${url}/token`)
  try {
    const port = await listen(store, parts.http, options.host, 'port', options.port)
    const smppPort = await listen(store, parts.smpp.server, options.host, 'smpp-port', options.smppPort)
    const host = hostToCall(options.host)
    url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`
    const carriersFile = writeCarriersFile(options.dataDir, parts.identity, { url, smppHost: host, smppPort })
    await store.committed()
    parts.webhooks.start()
    parts.outbox.start()
    parts.steps.start()
    return { url, smppPort, carriersFile, stop: () => stop(store, parts) }
  } catch (error) {
    await stop(store, parts)
    throw error
  }
}

function assemble(store: Store, options: Options, tokenUri: () => string) {
  const identity = loadIdentity(store)
  const ledger = createLedger(store)
  const messages = createMessages(store, ledger)
  const faults = createFaults(store)
  const webhooks = createWebhooks(store, ledger, identity, faults)
  const outbox = createOutbox(store, ledger)
  const receipt = createReceipts(ledger, faults, outbox)
  const offline = createOffline(store)
  const steps = createSteps(store, messages, options.delayMs, { offline, faults, emit: webhooks.owe, receipt })
  const tokens = createTokens(store, identity, faults, tokenUri)
  const rbm = createRbmRoutes({ store, ledger, messages, steps, faults }, tokens)
  const acting = { offline, messages, steps, emit: webhooks.owe, writeSms: outbox.writeSms }
  const control = createControlRoutes({ store, acting, ledger, faults, webhooks, webhookToken: identity.webhookToken })
  const http = createHttpServer((call) => {
    if (call.path.startsWith('/v1/')) return rbm(call)
    if (call.path === '/token') return tokens.issue(call)
    if (call.path.startsWith('/simulator/')) return control(call)
    return refusal('NOT_FOUND', 'Unknown path.')
  })
  const onSubmit = createSubmits({ store, ledger, messages, faults, steps, outbox })
  const smpp = createSmppServer({ identity, faults, outbox, onSubmit })
  return { identity, webhooks, outbox, steps, http, smpp }
}

async function stop(store: Store, { webhooks, outbox, steps, http, smpp }: Parts): Promise<void> {
  steps.stop()
  outbox.stop()
  const closed = new Promise<void>((resolve) => http.close(() => resolve()))
  // Accepted requests are committed and get their response; other connections are closed.
  await store.committed()
  await new Promise(setImmediate)
  http.closeAllConnections()
  await Promise.all([closed, smpp.stop(), webhooks.stop()])
  store.close()
}

/** Listens on the last port, so that existing configurations keep working, or on another one if that is in use. */
async function listen(store: Store, server: Server, host: string, name: string, wanted: number | undefined): Promise<number> {
  const last = Number(store.state.settings.get(name) ?? 0)
  let isFallback = false
  try {
    await listenOn(server, host, wanted ?? last)
  } catch (error) {
    const taken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
    if (wanted !== undefined || !taken)
      throw new StartError(`The simulator can't listen on ${host}:${wanted ?? last}: ${(error as Error).message}.`)
    await listenOn(server, host, 0)
    isFallback = true
  }
  const { port } = server.address() as { port: number }
  // After a fallback, the log keeps the previous port: it may be free at the next start.
  if (!isFallback) store.append({ is: 'setting', name, value: String(port) })
  return port
}

function listenOn(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      server.on('error', (error) => console.error(error))
      resolve()
    })
  })
}

/** Returns an address that callers can use: they cannot connect to an address that means all interfaces. */
function hostToCall(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}
