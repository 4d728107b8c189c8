import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { splitText } from '../../../src/sms/parts.ts'
import { until } from '../../support/until.ts'
import { part, startCarrier } from './support.ts'

// A peer that shares no line and no author with us or with the npm package: the sample SMSC of Debian's libnet-smpp-perl, as it is shipped.
const SAMPLE = '/usr/share/doc/libnet-smpp-perl/examples/smsc.pl'
const INSTALL =
  "apt-get install --no-install-recommends -o Dpkg::Options::='--path-include=/usr/share/doc/libnet-smpp-perl/*' libnet-smpp-perl"

function readSample(): string | undefined {
  if (existsSync(SAMPLE)) return readFileSync(SAMPLE, 'latin1')
  if (existsSync(`${SAMPLE}.gz`)) return gunzipSync(readFileSync(`${SAMPLE}.gz`)).toString('latin1')
  return undefined
}

function whatIsMissing(): string | false {
  if (spawnSync('perl', ['-MNet::SMPP', '-e', '1']).status !== 0) return `there is no Net::SMPP for Perl here; on Debian: ${INSTALL}`
  return readSample() === undefined && `there is no ${SAMPLE} here; on Debian: ${INSTALL.replace('install', 'install --reinstall')}`
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, 'localhost')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** The sample has its port written into it, so a copy with another one is run; nothing else of it is changed. */
async function startSample() {
  const sample = readSample() as string
  const port = await freePort()
  const copy = sample.replace('$port = 9900;', `$port = ${port};`)
  assert.notEqual(copy, sample, 'the sample names its port as it did')
  const dir = mkdtempSync(join(tmpdir(), 'herald-smsc-'))
  writeFileSync(join(dir, 'smsc.pl'), copy, 'latin1')
  const child = spawn('perl', [join(dir, 'smsc.pl')], { stdio: ['ignore', 'pipe', 'pipe'] })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => {
    output.stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    output.stderr += chunk
  })
  after(() => {
    child.kill('SIGKILL')
    rmSync(dir, { recursive: true })
  })
  await until('the sample listens', () => output.stderr.includes('Entering accept loop'))
  return { port, output }
}

describe('the SMPP carrier, against the sample SMSC of libnet-smpp-perl', () => {
  test('binds, submits names, numbers, parts and UCS-2, keeps the link alive, and unbinds', { skip: whatIsMissing() }, async () => {
    const { port, output } = await startSample()
    const carrier = startCarrier(port, { host: 'localhost', enquireLinkSeconds: 0.05 })
    const pieces = ['Hi €', 'a'.repeat(400), 'Zażółć gęślą jaźń 😀 '.repeat(10)].flatMap((text, reference) => splitText(text, reference))
    for (const sender of ['Herald', '48600100200', '7055']) {
      const outcomes = await Promise.all(pieces.map((piece) => carrier.submit(part({ ...piece, sender }))))
      // It gives every message the same id.
      for (const outcome of outcomes) assert.deepEqual(outcome, { is: 'sent', carrierMessageId: '123456789' })
    }
    const bound = performance.now()
    await until('the link was idle for some enquiries', () => performance.now() - bound > 150)
    assert.equal((await carrier.submit(part())).is, 'sent')
    await carrier.close()

    // The sample writes down what it understood when the connection ends.
    await until('it says goodbye', () => output.stdout.includes(':unbind'))
    const commands = [...output.stdout.matchAll(/Received #(\d+) \d+:(\w+)/g)].map(([, sequence, command]) => ({ sequence, command }))
    const count = (name: string) => commands.filter(({ command }) => command === name).length
    assert.deepEqual([count('bind_transceiver'), count('submit_sm'), count('unbind')], [1, 3 * pieces.length + 1, 1])
    assert.ok(count('enquire_link') >= 2)
    assert.deepEqual(
      commands.map(({ sequence }) => Number(sequence)),
      commands.map((_, index) => index + 1),
    )
    assert.equal(carrier.log().match(/bound to/g)?.length, 1, 'one connection, from the beginning to the end')
    assert.ok(!carrier.log().includes('no connection'))
  })
})
