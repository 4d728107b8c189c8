import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export type Peer = { port: number; child: ChildProcess; stop: () => Promise<void> }

/** Another program of this folder, which says on which port it listens. A process of its own, so that each side has a core. */
export async function startPeer(file: string): Promise<Peer> {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)))
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  return { port, child, stop: () => end(child) }
}

export type SimulatorProcess = { url: string; carriersFile: string; child: ChildProcess; stop: () => Promise<void> }

export async function startSimulator(): Promise<SimulatorProcess> {
  const dataDir = mkdtempSync(join(tmpdir(), 'herald-bench-'))
  const program = fileURLToPath(new URL('../simulator/bin/herald-simulator.js', import.meta.url))
  const child = fork(program, ['--data-dir', dataDir, '--delay-ms', '0'], { silent: true })
  const [chunk] = await once(child.stdout as NodeJS.ReadableStream, 'data')
  const stop = async () => {
    await end(child)
    rmSync(dataDir, { recursive: true })
  }
  return { ...JSON.parse(String(chunk)), child, stop }
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

const TICKS_PER_SECOND = 100

/** What a process has used so far, in ms; undefined where the system does not say it in this way (it is Linux that does). */
export function cpuMs({ pid }: { pid?: number | undefined }): number | undefined {
  if (process.platform !== 'linux') return undefined
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND
}
