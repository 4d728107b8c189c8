import { type ChildProcess, spawn } from 'node:child_process'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createClient } from './simulator.ts'
import { until } from './until.ts'

export const PROGRAM = fileURLToPath(new URL('../../bin/herald-simulator.js', import.meta.url))

/** `fileBlocks`: limits the size of its files to so many blocks of 512 bytes, as on a full disk. */
export function spawnSimulator(args: string[], fileBlocks?: number, env: Record<string, string> = {}) {
  const limit = fileBlocks === undefined ? '' : `ulimit -f ${fileBlocks}; `
  const command = ['-c', `${limit}exec "$0" "$@"`, process.execPath, PROGRAM, ...args]
  const child: ChildProcess = spawn('/bin/sh', command, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...env } })
  const output = { stdout: '', stderr: '' }
  child.stdout?.on('data', (chunk) => {
    output.stdout += chunk
  })
  child.stderr?.on('data', (chunk) => {
    output.stderr += chunk
  })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  after(() => child.kill('SIGKILL'))
  return { child, output, ended }
}

export async function startProcess(args: string[], fileBlocks?: number) {
  const started = spawnSimulator(args, fileBlocks)
  const line = await until('it is ready', () => {
    if (started.child.exitCode !== null) throw new Error(started.output.stderr)
    return started.output.stdout.includes('\n') && started.output.stdout
  })
  const ready: { ready: true; url: string; smppPort: number; carriersFile: string } = JSON.parse(line as string)
  return { ...started, ready, client: await createClient(ready.url, ready.carriersFile) }
}
