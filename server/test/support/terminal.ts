import { spawn, spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { HERALD } from './process.ts'
import { until } from './until.ts'

// Runs a `herald` command on a pseudo-terminal with `script` of util-linux. That of macOS has other options.
export const NO_TERMINAL = spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux')
  ? false
  : 'needs the program "script" of util-linux'

/** Answers the question of a command, or presses Ctrl-C if `answer` is undefined. Returns what the terminal showed. */
export async function answerHerald(args: string[], env: Record<string, string>, answer: string | undefined) {
  const command = [process.execPath, HERALD, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
  const child = spawn('script', ['--quiet', '--return', '--flush', '--command', command, '/dev/null'], {
    env: { PATH: process.env.PATH, SHELL: '/bin/sh', NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
    cwd: tmpdir(),
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let shown = ''
  child.stdout.on('data', (chunk) => {
    shown += chunk
  })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  try {
    await until('the command asks', () => shown.includes('Continue? [y/N] '))
    child.stdin.write(answer === undefined ? '\u0003' : `${answer}\r`)
    return { code: await ended, shown: shown.replaceAll('\r\n', '\n') }
  } finally {
    child.kill('SIGKILL')
  }
}
