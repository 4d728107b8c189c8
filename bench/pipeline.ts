import { randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Pool } from 'undici'
import { type Figure, measure, measureAll, print } from './measure.ts'
import { type HeraldProcess, startHerald, startPeer, startSimulator, temporaryDirectory } from './processes.ts'

// How many messages the service takes, hands over, and follows to the end: `npm run bench:pipeline`. The first line is the yardstick: a bare
// client and a bare server, which do nothing. Load, networks, service and PostgreSQL share the machine, so figures of one run can be
// compared with one another, not with those of another machine.

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } })
const seconds = values.quick ? 2 : 8
const COUNT = values.quick ? 1_000 : 10_000
const CONNECTIONS = 64

let numbers = 0
/** Ever another one; all of them are delivered and read. */
function nextNumber(): string {
  numbers += 1
  return `+4850${String(numbers % 100_000).padStart(5, '0')}10`
}

/** Posts messages of the demo account. */
function poster({ url, dataDir }: HeraldProcess) {
  const { authorization } = JSON.parse(readFileSync(join(dataDir, 'demo.json'), 'utf8')) as { authorization: string }
  const pool = new Pool(url, { connections: CONNECTIONS })
  async function post(): Promise<void> {
    const headers = { authorization, 'content-type': 'application/json', 'idempotency-key': randomUUID() }
    const message = { inline: { type: 'MESSAGE', content: 'Your order is on its way.' } }
    const body = JSON.stringify({ agentId: 'demo-single', recipient: nextNumber(), message })
    const answer = await pool.request({ method: 'POST', path: '/v1/messages', headers, body })
    await answer.body.dump()
    if (answer.statusCode !== 202) throw new Error(`the answer was ${answer.statusCode}`)
  }
  return { post, close: () => pool.destroy() }
}

/** So many posts, and the wait until all that were ever posted are through. */
function untilDone(post: () => Promise<void>, areThrough: (posted: number) => Promise<boolean>) {
  let posted = 0
  function call(): Promise<void> {
    posted += 1
    return post()
  }
  return { count: COUNT, concurrency: CONNECTIONS, call, isDone: () => areThrough(posted) }
}

async function yardstick(): Promise<Figure> {
  const peer = await startPeer('rbm-peer.ts')
  const pool = new Pool(`http://127.0.0.1:${peer.port}`, { connections: CONNECTIONS })
  async function call(): Promise<void> {
    const { body } = await pool.request({ method: 'POST', path: '/v1/phones', body: '{}' })
    await body.dump()
  }
  const figure = await measure('bare HTTP', { seconds, concurrency: CONNECTIONS, of: peer.child, call })
  await pool.destroy()
  await peer.stop()
  return figure
}

async function accept(): Promise<Figure> {
  const herald = await startHerald(['--only', 'api'])
  const { post, close } = poster(herald)
  const figure = await measure('accepted: a 202 after the commit', { seconds, concurrency: CONNECTIONS, of: herald.child, call: post })
  await close()
  await herald.stop()
  return figure
}

/** To a network that takes all and reports nothing: what the claims, the calls and the results cost. */
async function handOver(): Promise<Figure> {
  const api = await startHerald(['--only', 'api'])
  const { post, close } = poster(api)
  const peer = await startPeer('rbm-peer.ts')
  const simulator = await startSimulator()
  const carriersFile = join(temporaryDirectory(), 'carriers.json')
  writeFileSync(carriersFile, carriersAt(`http://127.0.0.1:${peer.port}`, simulator.carriersFile))
  await simulator.stop()
  const delivery = await startHerald(['--only', 'delivery'], { HERALD_DATABASE_URL: api.databaseUrl, HERALD_CARRIERS: carriersFile })
  const figure = await measureAll(
    'accepted and handed over',
    delivery.child,
    untilDone(post, async (posted) => (await sentBy(delivery)) >= posted),
  )
  for (const { stop } of [{ stop: close }, delivery, peer, api]) await stop()
  return figure
}

/** The simulator's settings, with another address. */
function carriersAt(address: string, carriersFile: string): string {
  const { simulator } = JSON.parse(readFileSync(carriersFile, 'utf8'))
  return JSON.stringify({
    simulator: { ...simulator, address, serviceAccount: { ...simulator.serviceAccount, token_uri: `${address}/token` } },
  })
}

async function sentBy({ url }: HeraldProcess): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text()
  return Number(/herald_carrier_calls_total\{[^}]*outcome="sent"\} (\d+)/.exec(metrics)?.[1] ?? 0)
}

async function wholePipeline(): Promise<Figure> {
  const simulator = await startSimulator()
  const herald = await startHerald([], { HERALD_CARRIERS: simulator.carriersFile })
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ url: `${herald.url}/carriers/simulator/webhook` })
  await fetch(`${simulator.url}/simulator/webhook`, { method: 'PUT', headers, body })
  const { post, close } = poster(herald)
  async function haveReceipts(posted: number): Promise<boolean> {
    const counts = (await (await fetch(`${simulator.url}/simulator/counts`)).json()) as Record<string, number>
    return (counts['webhook-accepted'] ?? 0) >= 2 * posted
  }
  const figure = await measureAll('accepted, handed over, both receipts stored', herald.child, untilDone(post, haveReceipts))
  for (const { stop } of [{ stop: close }, herald, simulator]) await stop()
  return figure
}

const figures: Figure[] = []
for (const run of [yardstick, accept, handOver, wholePipeline]) figures.push(await run())
print(figures)
process.exit(0)
