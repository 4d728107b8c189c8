import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/**
 * Does what the README says, word for word, where nothing is prepared: in a fresh clone, with an empty npm cache, as an ordinary user
 * and, where this runs as root, as root too. Each command is run twice in a row. `--quick` leaves out what CI has done itself by then:
 * root's tests, and the repetition of the ordinary user's.
 */
const quick = process.argv.includes('--quick')
const repository = fileURLToPath(new URL('../../', import.meta.url))
const START = 'npm ci && npm start'
const TEST = 'npm ci && npm test'
const READY_TIMEOUT_MS = 180_000
const READ_TIMEOUT_MS = 15_000
const STOP_TIMEOUT_MS = 10_000

type User = { name: string; uid?: number; gid?: number }

const users: User[] =
  process.getuid?.() === 0 ? [{ name: 'root' }, { name: 'an ordinary user', uid: 65534, gid: 65534 }] : [{ name: 'this user' }]

function readmeCommands(): { firstRequest: string } {
  const blocks = [...readFileSync(join(repository, 'README.md'), 'utf8').matchAll(/```sh\n([^`]*?)\n```/g)].map(
    ([, text]) => text as string,
  )
  for (const command of [START, TEST]) {
    if (!blocks.includes(command)) throw new Error(`the README no longer shows "${command}"`)
  }
  const firstRequest = blocks.find((block) => block.startsWith('curl '))
  if (firstRequest === undefined) throw new Error('the README no longer shows a first request')
  return { firstRequest }
}

/** A clone that belongs to the user, in a directory that nobody else may enter, with a home of its own. */
function cloneFor({ uid, gid }: User): { home: string; clone: string } {
  const home = mkdtempSync(join(tmpdir(), 'herald-install-'))
  const clone = join(home, 'herald')
  if (uid !== undefined && gid !== undefined) chownSync(home, uid, gid)
  mkdirSync(clone)
  execFileSync('git', ['clone', '--quiet', '--no-hardlinks', repository, clone])
  if (uid !== undefined) execFileSync('chown', ['-R', `${uid}:${gid}`, home])
  return { home, clone }
}

/** In a session of its own, so that Ctrl-C can be sent as a terminal sends it: to all of its processes at once. */
function run(command: string, cwd: string, home: string, user: User): ChildProcess {
  // Nothing of the npm that runs this script, nor of its Node, reaches the newcomer's.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(npm_|NODE|HERALD_|INIT_CWD)/.test(name)))
  env.PATH = (env.PATH ?? '')
    .split(':')
    .filter((dir) => !dir.includes('node_modules'))
    .join(':')
  return spawn('sh', ['-c', command], {
    cwd,
    env: { ...env, HOME: home, ...keepRegistry() },
    uid: user.uid,
    gid: user.gid,
    detached: true,
    stdio: 'inherit',
  })
}

/** Where packages come from is the machine's business, not the newcomer's. */
function keepRegistry(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(process.env).filter((entry): entry is [string, string] => /^npm_config_(registry|cafile)$/.test(entry[0])),
  )
}

function exitCode(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => child.once('exit', resolve))
}

async function proveTests(clone: string, home: string, user: User): Promise<void> {
  const code = await exitCode(run(TEST, clone, home, user))
  if (code !== 0) throw new Error(`"${TEST}" as ${user.name} exited with ${code}`)
}

async function proveStart(clone: string, home: string, user: User, firstRequest: string): Promise<void> {
  const child = run(START, clone, home, user)
  const ended = exitCode(child)
  try {
    await untilReady(child)
    const answer = await sendFirstMessage(firstRequest, clone, home, user)
    await untilRead(answer, clone)
    await stopByCtrlC(child, ended)
  } catch (error) {
    process.kill(-(child.pid as number), 'SIGKILL')
    throw error
  }
}

async function untilReady(child: ChildProcess): Promise<void> {
  const deadline = Date.now() + READY_TIMEOUT_MS
  for (;;) {
    const ready = await fetch('http://127.0.0.1:8080/readyz').then(
      ({ ok }) => ok,
      () => false,
    )
    if (ready) return
    if (child.exitCode !== null || Date.now() > deadline) throw new Error(`"${START}" does not come up`)
    await sleep(100)
  }
}

/** With curl where there is one; it is part of no promise, so without it the same request is made from here. */
async function sendFirstMessage(command: string, clone: string, home: string, user: User): Promise<string> {
  const options = { cwd: clone, env: { PATH: process.env.PATH, HOME: home }, uid: user.uid, gid: user.gid }
  try {
    return execFileSync('sh', ['-c', `${command} --silent --fail`], options).toString('utf8')
  } catch {
    const [, url, body] = /(http\S+) -d '([^']*)'/.exec(command) as unknown as [string, string, string]
    const headers = { ...demoAuthorization(clone), 'Content-Type': 'application/json', 'Idempotency-Key': 'first' }
    return await (await fetch(url, { method: 'POST', headers, body })).text()
  }
}

function demoAuthorization(clone: string): { Authorization: string } {
  return { Authorization: readFileSync(join(clone, 'data/demo.header'), 'utf8').replace('Authorization: ', '').trim() }
}

/** The simulated phone gets the message and reads it. */
async function untilRead(answer: string, clone: string): Promise<void> {
  const { messageId } = JSON.parse(answer) as { messageId?: string }
  if (messageId === undefined) throw new Error(`the first message was answered with ${answer}`)
  const deadline = Date.now() + READ_TIMEOUT_MS
  for (;;) {
    const response = await fetch(`http://127.0.0.1:8080/v1/messages/${messageId}`, { headers: demoAuthorization(clone) })
    const { status } = (await response.json()) as { status?: string }
    if (status === 'READ') return
    if (Date.now() > deadline) throw new Error(`the first message is ${status}`)
    await sleep(1_000)
  }
}

async function stopByCtrlC(child: ChildProcess, ended: Promise<number | null>): Promise<void> {
  process.kill(-(child.pid as number), 'SIGINT')
  const outcome = await Promise.race([ended, sleep(STOP_TIMEOUT_MS, 'too late', { ref: false })])
  if (outcome === 'too late') throw new Error(`Ctrl-C did not stop it within ${STOP_TIMEOUT_MS} ms`)
  const stillThere = await fetch('http://127.0.0.1:8080/healthz').then(
    () => true,
    () => false,
  )
  if (stillThere) throw new Error('the service outlived Ctrl-C')
}

const { firstRequest } = readmeCommands()
let passed = 0
for (const user of users) {
  const { home, clone } = cloneFor(user)
  const isLast = user === users.at(-1)
  try {
    for (const round of [1, 2]) {
      console.error(`--- ${START}, as ${user.name}, round ${round}`)
      await proveStart(clone, home, user, firstRequest)
      passed += 1
    }
    for (const round of quick ? (isLast ? [1] : []) : [1, 2]) {
      console.error(`--- ${TEST}, as ${user.name}, round ${round}`)
      await proveTests(clone, home, user)
      passed += 1
    }
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}
console.error(`The README's commands work from a fresh clone: ${passed} runs passed.`)
