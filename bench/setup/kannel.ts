import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../server/test/support/ports.ts'
import { until } from '../measure/rounds.ts'
import { randomRecipient } from './accounts.ts'
import { temporaryDirectory } from './files.ts'
import { type Program, startProgram } from './processes.ts'

// Kannel as Debian packages it: `bearerbox` stores messages and talks to the SMSC, `smsbox` takes requests over HTTP, and `fakesmsc` plays
// an SMSC that accepts each message at once.

const PROGRAMS = { bearerbox: '/usr/sbin/bearerbox', smsbox: '/usr/sbin/smsbox', smsc: '/usr/lib/kannel/test/fakesmsc' }
const PASSWORD = 'bench'
// Panics only. A log of every message would be one more file to write.
const LOG_LEVEL = '4'

export function isKannelInstalled(): boolean {
  return Object.values(PROGRAMS).every((file) => existsSync(file))
}

type Ports = { admin: number; box: number; smsc: number; http: number }

/** The store is a file: with it `bearerbox` took 130 µs of CPU time for a message, and 251 with a spool directory (one round of 3 s each). */
function configurationOf(ports: Ports, directory: string): string {
  return `
group = core
admin-port = ${ports.admin}
admin-password = ${PASSWORD}
smsbox-port = ${ports.box}
log-level = ${LOG_LEVEL}
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
log-level = ${LOG_LEVEL}

group = sendsms-user
username = bench
password = ${PASSWORD}
`
}

/** `programs`: those whose CPU time counts. */
export type Kannel = { url: string; request: () => string; programs: Record<string, Program> }

export async function startKannel(): Promise<Kannel> {
  const directory = temporaryDirectory()
  const ports = { admin: await freePort(), box: await freePort(), smsc: await freePort(), http: await freePort() }
  const file = join(directory, 'kannel.conf')
  writeFileSync(file, configurationOf(ports, directory))
  const untilStatusHas = (text: string) =>
    until(async () => (await textAt(`http://127.0.0.1:${ports.admin}/status.txt?password=${PASSWORD}`)).includes(text))
  const bearerbox = startProgram(PROGRAMS.bearerbox, ['-v', LOG_LEVEL, file])
  await untilStatusHas('Status: running')
  const smsbox = startProgram(PROGRAMS.smsbox, ['-v', LOG_LEVEL, file])
  await untilStatusHas('smsbox:')
  startProgram(PROGRAMS.smsc, ['-v', LOG_LEVEL, '-H', '127.0.0.1', '-r', String(ports.smsc)])
  await untilStatusHas('(online')
  return { url: `http://127.0.0.1:${ports.http}`, request: sendSmsRequest, programs: { bearerbox, smsbox } }
}

/** Empty while nothing listens there. */
async function textAt(url: string): Promise<string> {
  try {
    return await (await fetch(url)).text()
  } catch {
    return ''
  }
}

/** The same text as in other parts, with credentials. */
function sendSmsRequest(): string {
  const query = `username=bench&password=${PASSWORD}&to=${encodeURIComponent(randomRecipient())}&text=Your+order+is+on+its+way.`
  return `GET /cgi-bin/sendsms?${query} HTTP/1.1\r\nHost: localhost\r\n\r\n`
}
