import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../server/test/support/ports.ts'
import { until } from './measure.ts'
import { type Program, startProgram } from './processes.ts'
import { temporaryDirectory } from './temporary.ts'

// Kannel as Debian packages it: `bearerbox`, which stores messages and talks to the SMSC, `smsbox`, which takes requests over HTTP, and a
// program that stands in for the SMSC and answers at once.

const PROGRAMS = { bearerbox: '/usr/sbin/bearerbox', smsbox: '/usr/sbin/smsbox', smsc: '/usr/lib/kannel/test/fakesmsc' }
const PASSWORD = 'bench'
/** Kannel logs panics alone. Its log of every message would be one more file to write. */
const QUIET = '4'

export type Kannel = { url: string; request: () => string; programs: Record<string, Program>; stop: () => Promise<void> }

export function isKannelInstalled(): boolean {
  return Object.values(PROGRAMS).every((file) => existsSync(file))
}

type Ports = { admin: number; box: number; smsc: number; http: number }

/** The store is a file: in one round of 3 s each, `bearerbox` took 130 µs of CPU time for a message, and 251 with a spool directory. */
function configurationOf(ports: Ports, directory: string): string {
  return `
group = core
admin-port = ${ports.admin}
admin-password = ${PASSWORD}
smsbox-port = ${ports.box}
log-level = ${QUIET}
store-type = file
store-location = "${join(directory, 'store')}"

group = smsc
smsc = fake
smsc-id = fake
port = ${ports.smsc}
connect-allow-ip = 127.0.0.1

group = smsbox
bearerbox-host = 127.0.0.1
sendsms-port = ${ports.http}
global-sender = 100
log-level = ${QUIET}

group = sendsms-user
username = bench
password = ${PASSWORD}
`
}

export async function startKannel(): Promise<Kannel> {
  const directory = temporaryDirectory()
  const ports = { admin: await freePort(), box: await freePort(), smsc: await freePort(), http: await freePort() }
  const file = join(directory, 'kannel.conf')
  writeFileSync(file, configurationOf(ports, directory))
  const status = `http://127.0.0.1:${ports.admin}/status.txt?password=${PASSWORD}`
  const bearerbox = startProgram(PROGRAMS.bearerbox, ['-v', QUIET, file])
  await until(async () => (await textAt(status)).includes('Status: running'))
  const smsbox = startProgram(PROGRAMS.smsbox, ['-v', QUIET, file])
  await until(async () => (await textAt(status)).includes('smsbox:'))
  const smsc = startProgram(PROGRAMS.smsc, ['-v', QUIET, '-H', '127.0.0.1', '-r', String(ports.smsc)])
  await until(async () => (await textAt(status)).includes('(online'))
  async function stop(): Promise<void> {
    for (const program of [smsc, smsbox, bearerbox]) await program.stop()
  }
  return { url: `http://127.0.0.1:${ports.http}`, request: sendSmsRequest, programs: { bearerbox, smsbox }, stop }
}

/** Empty while nothing listens there. */
async function textAt(url: string): Promise<string> {
  try {
    return await (await fetch(url)).text()
  } catch {
    return ''
  }
}

/** The same text to a number at random, with credentials. */
function sendSmsRequest(): string {
  const recipient = `%2B4850${String(Math.floor(Math.random() * 100_000)).padStart(5, '0')}10`
  const query = `username=bench&password=${PASSWORD}&to=${recipient}&text=Your+order+is+on+its+way.`
  return `GET /cgi-bin/sendsms?${query} HTTP/1.1\r\nHost: localhost\r\n\r\n`
}
