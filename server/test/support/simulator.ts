import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type CarrierSettings, readCarriers } from '../../src/carriers/settings.ts'
import { call } from './service.ts'

const PROGRAM = fileURLToPath(new URL('../../../simulator/bin/herald-simulator.js', import.meta.url))

export type TestSimulator = {
  url: string
  /** The file that HERALD_CARRIERS would name. */
  carriersFile: string
  settings: CarrierSettings
  /** The RCS carrier's settings. */
  rcs: CarrierSettings['rcs'][number]
  sms: NonNullable<CarrierSettings['sms']>
  /** A request to what it has for tests, such as `phones/+48500100200`; fails where that does. */
  ask: (path: string, body?: unknown, method?: string) => Promise<any>
  /** Kills it. */
  stop: () => Promise<void>
}

/** Starts the simulator in its own process, by default without delays, until the test file ends. */
export async function startSimulator(delayMs = 0): Promise<TestSimulator> {
  const dataDir = mkdtempSync(join(tmpdir(), 'herald-simulator-'))
  const options = ['--data-dir', dataDir, '--delay-ms', `${delayMs}`, '--stop-with-stdin']
  const child = spawn(process.execPath, [PROGRAM, ...options], { stdio: ['pipe', 'pipe', 'inherit'] })
  async function stop(): Promise<void> {
    const ended = once(child, 'exit')
    if (child.exitCode === null && child.signalCode === null && child.kill('SIGKILL')) await ended
  }
  after(async () => {
    await stop()
    rmSync(dataDir, { recursive: true, force: true })
  })
  const [line] = await once(createInterface(child.stdout), 'line')
  const { url, carriersFile } = JSON.parse(line)
  const settings = readCarriers(carriersFile)
  const [rcs] = settings.rcs
  if (rcs === undefined || settings.sms === undefined) throw new Error('the simulator is both networks')
  // Only `PUT webhook` requires it.
  const authorization = `Bearer ${rcs.webhookToken}`
  async function ask(path: string, body?: unknown, method = body === undefined ? 'GET' : 'POST'): Promise<any> {
    const response = await call(`${url}/simulator/${path}`, { method, body, authorization })
    if (response.status >= 300) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(response.body)}`)
    return response.body
  }
  return { url, carriersFile, settings, rcs, sms: settings.sms, ask, stop }
}
