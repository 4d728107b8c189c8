import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { joinEmbeddedServer } from '../../src/db/embedded/server.ts'
import { type HeraldProcess, postmasterPid, startLastingHerald } from './process.ts'
import { call } from './service.ts'
import { until } from './until.ts'

// A service on its embedded database, and ways in which both can fail.

function demoAuthorization(dataDir: string): string {
  return JSON.parse(readFileSync(join(dataDir, 'demo.json'), 'utf8')).authorization
}

/** Makes a change that gets a 200 response, so it must never be lost. */
export async function leaveMark({ url }: HeraldProcess, dataDir: string, mark: string): Promise<void> {
  const authorization = demoAuthorization(dataDir)
  const { status } = await call(`${url}/v1/agents/demo-single`, { method: 'PATCH', authorization, body: { displayName: mark } })
  assert.equal(status, 200)
}

export async function readMark({ url }: HeraldProcess, dataDir: string): Promise<string> {
  const { body } = await call(`${url}/v1/agents`, { authorization: demoAuthorization(dataDir) })
  return body.items.find((agent: { agentId: string }) => agent.agentId === 'demo-single').displayName
}

export async function stopInOrder({ child, ended }: HeraldProcess): Promise<void> {
  child.kill('SIGTERM')
  assert.equal(await ended, 0)
}

/** Kills service and database. Returns the lock file that they leave. */
export async function killBoth({ child, ended }: HeraldProcess, dataDir: string): Promise<string> {
  const lock = readFileSync(lockFileOf(dataDir), 'utf8')
  child.kill('SIGKILL')
  process.kill(postmasterPid(dataDir) as number, 'SIGKILL')
  await ended
  return lock
}

export function lockFileOf(dataDir: string): string {
  return join(dataDir, 'postgres', 'postmaster.pid')
}

/** The service of the previous test, or a new one if that has ended. */
export function serviceOn(dataDir: string) {
  let herald: HeraldProcess | undefined
  async function startAgain(): Promise<HeraldProcess> {
    const started = await startLastingHerald({ HERALD_DATA_DIR: dataDir })
    herald = started
    void started.ended.then(() => {
      if (herald === started) herald = undefined
    })
    return started
  }
  return { startAgain, current: async () => herald ?? (await startAgain()) }
}

/** The lock file at the start: none, that of a crashed server, or an empty one, which a crash of the machine can leave. */
export type LeftBehind = 'nothing' | 'a stale lock' | 'an empty lock'

export async function eightComeAndLeave(dataDir: string, leftBehind: LeftBehind): Promise<void> {
  const noProcess = 2 ** 22 + 1
  const lock = leftBehind === 'an empty lock' ? '' : `${noProcess}\n${dataDir}/postgres\n1700000000\n5432\n/nowhere\n`
  if (leftBehind !== 'nothing') writeFileSync(lockFileOf(dataDir), lock)
  const all = await Promise.all(Array.from({ length: 8 }, () => joinEmbeddedServer(dataDir, false, () => {})))
  await Promise.all(all.map(({ leave }) => leave()))
  await until('it is stopped', () => postmasterPid(dataDir) === undefined)
}

/** As in a container: root, but without the right to inspect other processes. */
export const SETPRIV = '/usr/bin/setpriv'
export const CONTAINED = [SETPRIV, '--bounding-set=-sys_ptrace', '--inh-caps=-sys_ptrace']
