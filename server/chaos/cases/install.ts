import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { until } from '../../test/support/until.ts'
import { readOptions } from '../support/options.ts'
import { say } from '../support/progress.ts'

const HELP = `npm run chaos -- install [options]: runs the README's commands word for word in a fresh clone with an empty npm cache, as an ordinary
user and, if this runs as root, as root too. Each command runs twice.

  --quick   leaves out the tests, which CI has run by then
  --help    prints this

The status is 0 if everything worked.
`

const REPOSITORY = fileURLToPath(new URL('../../../', import.meta.url))
const START = 'npm ci && npm start'
const TEST = 'npm ci && npm test'
const URL_OF_SERVICE = 'http://127.0.0.1:8080'
const READY_TIMEOUT_MS = 180_000
const READ_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_MS = 10_000

/** `home`: private to the user. `clone`: of this repository, below it. */
type Newcomer = { name: string; uid?: number; gid?: number; home: string; clone: string }

const USERS = process.getuid?.() === 0 ? [{ name: 'root' }, { name: 'an ordinary user', uid: 65534, gid: 65534 }] : [{ name: 'this user' }]

export async function runInstall(args: string[]): Promise<number> {
  const { quick } = readOptions(args, { help: HELP, flags: ['quick'] })
  const firstRequest = readmeRequest()
  for (const user of USERS) {
    const newcomer = prepare(user)
    const tests = quick ? 0 : 2
    try {
      for (let n = 0; n < 2; n++) await testStart(newcomer, firstRequest)
      for (let n = 0; n < tests; n++) await runTests(newcomer)
    } finally {
      rmSync(newcomer.home, { recursive: true, force: true })
    }
  }
  say("the README's commands work from a fresh clone")
  return 0
}

/** The first request of the README, which must also show both commands. */
function readmeRequest(): string {
  const readme = readFileSync(join(REPOSITORY, 'README.md'), 'utf8')
  const blocks = [...readme.matchAll(/```sh\n([^`]*?)\n```/g)].map(([, text]) => text as string)
  for (const command of [START, TEST]) if (!blocks.includes(command)) throw new Error(`the README no longer shows "${command}"`)
  const request = blocks.find((block) => block.startsWith('curl '))
  if (request === undefined) throw new Error('the README no longer shows a first request')
  return request
}

function prepare(user: (typeof USERS)[number]): Newcomer {
  const home = mkdtempSync(join(tmpdir(), 'herald-install-'))
  const clone = join(home, 'herald')
  const { uid, gid } = user as Partial<Newcomer>
  if (uid !== undefined && gid !== undefined) chownSync(home, uid, gid)
  mkdirSync(clone)
  execFileSync('git', ['clone', '--quiet', '--no-hardlinks', REPOSITORY, clone])
  if (uid !== undefined) execFileSync('chown', ['-R', `${uid}:${gid}`, home])
  return { ...user, home, clone }
}

/** In a session of its own, so that Ctrl-C reaches all of its processes at once, as from a terminal. */
function run(command: string, { name, clone, home, uid, gid }: Newcomer): { child: ChildProcess; ended: Promise<number | null> } {
  say(`${command}, as ${name}`)
  // Nothing of the npm and the Node that run this reaches the newcomer's, except where packages come from.
  const isKept = (variable: string) => /^npm_config_(registry|cafile)$/.test(variable) || !/^(npm_|NODE|HERALD_|INIT_CWD)/.test(variable)
  const env = Object.fromEntries(Object.entries(process.env).filter(([variable]) => isKept(variable)))
  const dirs = (env.PATH ?? '').split(':').filter((dir) => !dir.includes('node_modules'))
  const options = { cwd: clone, env: { ...env, PATH: dirs.join(':'), HOME: home }, uid, gid, detached: true, stdio: 'inherit' } as const
  const child = spawn('sh', ['-c', command], options)
  return { child, ended: new Promise((resolve) => child.once('exit', resolve)) }
}

async function runTests(newcomer: Newcomer): Promise<void> {
  const code = await run(TEST, newcomer).ended
  if (code !== 0) throw new Error(`"${TEST}" as ${newcomer.name} exited with ${code}`)
}

const isOk = (path: string) =>
  fetch(`${URL_OF_SERVICE}${path}`).then(
    ({ ok }) => ok,
    () => false,
  )

async function testStart(newcomer: Newcomer, firstRequest: string): Promise<void> {
  const { child, ended } = run(START, newcomer)
  try {
    const isReady = () => {
      if (child.exitCode !== null) throw new Error(`"${START}" has ended`)
      return isOk('/readyz')
    }
    await until(`"${START}" is ready`, isReady, READY_TIMEOUT_MS)
    await untilRead(await sendFirstMessage(firstRequest, newcomer), newcomer)
    process.kill(-(child.pid as number), 'SIGINT')
    const outcome = await Promise.race([ended, sleep(STOP_TIMEOUT_MS, 'too late', { ref: false })])
    if (outcome === 'too late') throw new Error(`Ctrl-C did not stop it within ${STOP_TIMEOUT_MS} ms`)
    if (await isOk('/healthz')) throw new Error('the service runs after Ctrl-C')
  } catch (error) {
    process.kill(-(child.pid as number), 'SIGKILL')
    throw error
  }
}

/** With curl if it is installed. Otherwise this program makes the same request: no promise is about curl. */
async function sendFirstMessage(command: string, newcomer: Newcomer): Promise<string> {
  const { clone, home, uid, gid } = newcomer
  try {
    const options = { cwd: clone, env: { PATH: process.env.PATH, HOME: home }, uid, gid }
    return execFileSync('sh', ['-c', `${command} --silent --fail`], options).toString('utf8')
  } catch {
    const [, url, body] = /(http\S+) -d '([^']*)'/.exec(command) as unknown as [string, string, string]
    const headers = { ...demoAuthorization(newcomer), 'Content-Type': 'application/json', 'Idempotency-Key': 'first' }
    return await (await fetch(url, { method: 'POST', headers, body })).text()
  }
}

function demoAuthorization({ clone }: Newcomer): { Authorization: string } {
  return { Authorization: readFileSync(join(clone, 'data/demo.header'), 'utf8').replace('Authorization: ', '').trim() }
}

/** The simulated phone gets the message and reads it. */
async function untilRead(response: string, newcomer: Newcomer): Promise<void> {
  const { messageId } = JSON.parse(response) as { messageId?: string }
  if (messageId === undefined) throw new Error(`the response to the first message was ${response}`)
  const headers = demoAuthorization(newcomer)
  async function isRead(): Promise<boolean> {
    // Once a second: without a pause, a fast machine would reach the account's limit before the phone has read the message.
    await sleep(1_000)
    const shown = await fetch(`${URL_OF_SERVICE}/v1/messages/${messageId}`, { headers })
    return ((await shown.json()) as { status?: string }).status === 'READ'
  }
  await until('the first message is read', isRead, READ_TIMEOUT_MS)
}
