import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Cleanup } from '../chaos/support/cleanup.ts'
import { createDatabaseServer } from '../chaos/topology/database.ts'
import { createNetwork } from '../chaos/topology/network.ts'
import { createProgram, type Program } from '../chaos/topology/program.ts'
import { freePort } from '../test/support/ports.ts'
import { createWorld } from './create-world.ts'
import { ADMIN_API, type ApiDocument } from './document.ts'
import type { World } from './world.ts'

// The service under test: all roles in one process, as `herald serve` runs them, on a PostgreSQL and a simulated network of its own. The
// limits are so high that only wrong credentials reach one.

const HERALD = fileURLToPath(new URL('../bin/herald.js', import.meta.url))
const SETTINGS = {
  HERALD_LIMITS: 'memory',
  HERALD_LIMIT_MESSAGES_PER_SECOND: '1000000',
  HERALD_LIMIT_EVENTS_PER_SECOND: '1000000',
  HERALD_LIMIT_OTHERS_PER_MINUTE: '1000000',
  HERALD_LOG_LEVEL: 'warn',
}

export type FuzzedService = {
  program: Program
  port: number
  /** Where Node's inspector listens. */
  inspector: string
  /** Of /v1 and of /admin/v1. */
  documents: [ApiDocument, ApiDocument]
  world: World
  /** Texts that no response may contain. */
  secrets: string[]
}

export async function startService(dir: string, cleanup: Cleanup): Promise<FuzzedService> {
  const database = await createDatabaseServer(dir)
  cleanup.push(() => database.stop())
  await database.start()
  const network = await createNetwork(dir)
  cleanup.push(() => network.kill())
  await network.start()
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const env = {
    ...SETTINGS,
    HERALD_PORT: String(port),
    HERALD_DATA_DIR: join(dir, 'service'),
    HERALD_DATABASE_URL: database.url,
    HERALD_CARRIERS: network.carriersFile,
  }
  mkdirSync(env.HERALD_DATA_DIR)
  const program = createServiceProgram(dir, env)
  cleanup.push(() => program.stop())
  await program.start()
  await network.ask('webhook', { url: `${url}/carriers/simulator/webhook` }, 'PUT')
  const inspector = /ws:\S+/.exec(readFileSync(program.errFile, 'utf8'))?.[0] ?? ''
  const world = await createWorld(url, database.url, network.carriersFile)
  const documents: FuzzedService['documents'] = [await fetchDocument(`${url}/v1`), await fetchDocument(`${url}${ADMIN_API}`)]
  return { program, port, inspector, documents, world, secrets: secretsOf(world) }
}

async function fetchDocument(api: string): Promise<ApiDocument> {
  return (await (await fetch(`${api}/openapi.json`)).json()) as ApiDocument
}

function createServiceProgram(dir: string, env: Record<string, string>): Program {
  return createProgram({
    name: 'herald',
    args: ['--v8-pool-size=1', '--inspect=127.0.0.1:0', HERALD, 'serve'],
    env,
    dir,
    readyText: 'Herald is ready at',
  })
}

function secretsOf({ keys, tokens, cookies, password, webhookToken }: World): string[] {
  const last = (value: string) => value.split(/[:= ]/).at(-1) as string
  return [...[...Object.values(keys), ...Object.values(tokens), ...cookies].map(last), password, webhookToken]
}
