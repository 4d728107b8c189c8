import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { splitText } from '../../../src/sms/segments.ts'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/until.ts'
import { smsSegment, startCarrier } from './support.ts'

// A peer that shares no line and no author with us or with the npm package: the sample SMSC of Debian's libnet-smpp-perl. It prints which
// commands arrived, but not their fields.
const SAMPLE = '/usr/share/doc/libnet-smpp-perl/examples/smsc.pl'
const INSTALL =
  "apt-get install --no-install-recommends -o Dpkg::Options::='--path-include=/usr/share/doc/libnet-smpp-perl/*' libnet-smpp-perl"

function readSample(): string | undefined {
  if (existsSync(SAMPLE)) return readFileSync(SAMPLE, 'latin1')
  return existsSync(`${SAMPLE}.gz`) ? gunzipSync(readFileSync(`${SAMPLE}.gz`)).toString('latin1') : undefined
}

const HAS_NET_SMPP = spawnSync('perl', ['-MNet::SMPP', '-e', '1']).status === 0
const noNetSmpp = !HAS_NET_SMPP && `Net::SMPP for Perl is not installed; on Debian: ${INSTALL}`
const noSample =
  noNetSmpp || (readSample() === undefined && `${SAMPLE} is missing; on Debian: ${INSTALL.replace('install', 'install --reinstall')}`)

/** Runs a copy of the sample with another port, which is written into it. */
async function startSample() {
  const sample = readSample() as string
  const port = await freePort()
  const copy = sample.replace('$port = 9900;', `$port = ${port};`)
  assert.notEqual(copy, sample, 'the sample sets its port as before')
  const dir = mkdtempSync(join(tmpdir(), 'herald-smsc-'))
  after(() => rmSync(dir, { recursive: true }))
  writeFileSync(join(dir, 'smsc.pl'), copy, 'latin1')
  const child = spawn('perl', [join(dir, 'smsc.pl')], { stdio: ['ignore', 'pipe', 'pipe'] })
  after(() => child.kill('SIGKILL'))
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (chunk) => {
      output[name] += chunk
    })
  }
  await until('the sample listens', () => output.stderr.includes('Entering accept loop'))
  return { port, output }
}

test('the SMPP carrier binds to the sample SMSC, submits names, numbers, segments and UCS-2, keeps the link alive, and unbinds', {
  skip: noSample,
}, async () => {
  const { port, output } = await startSample()
  const carrier = startCarrier(port, { host: 'localhost', enquireLinkSeconds: 0.05 })
  const pieces = ['Hi €', 'a'.repeat(400), 'Zażółć gęślą jaźń 😀 '.repeat(10)].flatMap((text, reference) => splitText(text, reference))
  for (const sender of ['Herald', '48600100200', '7055']) {
    const outcomes = await Promise.all(pieces.map((piece) => carrier.submit(smsSegment({ ...piece, sender }))))
    // It gives every message the same id.
    for (const outcome of outcomes) assert.deepEqual(outcome, { is: 'sent', carrierMessageId: '123456789' })
  }
  const idleSince = performance.now()
  await until('the link was idle for some enquiries', () => performance.now() - idleSince > 500)
  assert.equal((await carrier.submit(smsSegment())).is, 'sent')
  await carrier.close()

  // The sample prints what it received when the connection ends.
  await until('it unbinds', () => output.stdout.includes(':unbind'))
  const commands = [...output.stdout.matchAll(/Received #(\d+) \d+:(\w+)/g)].map(([, sequence, command]) => ({ sequence, command }))
  const count = (name: string) => commands.filter(({ command }) => command === name).length
  assert.deepEqual([count('bind_transceiver'), count('submit_sm'), count('unbind')], [1, 3 * pieces.length + 1, 1])
  assert.ok(count('enquire_link') >= 2)
  assert.deepEqual(
    commands.map(({ sequence }) => Number(sequence)),
    commands.map((_, index) => index + 1),
  )
  assert.equal(carrier.log().match(/bound to/g)?.length, 1, 'one connection for all')
  assert.ok(!carrier.log().includes('no connection'))
})
