import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { splitText } from '../../../src/sms/parts.ts'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/until.ts'
import { PASSWORD, part, startCarrier } from './support.ts'

// A peer that shares no line and no author with us or with the npm package: Debian's libnet-smpp-perl. Its sample SMSC, as it is shipped,
// says which commands it took and nothing of what they held; that is printed by a script of ours, decoded by Net::SMPP.
const SAMPLE = '/usr/share/doc/libnet-smpp-perl/examples/smsc.pl'
const INSTALL =
  "apt-get install --no-install-recommends -o Dpkg::Options::='--path-include=/usr/share/doc/libnet-smpp-perl/*' libnet-smpp-perl"

function readSample(): string | undefined {
  if (existsSync(SAMPLE)) return readFileSync(SAMPLE, 'latin1')
  if (existsSync(`${SAMPLE}.gz`)) return gunzipSync(readFileSync(`${SAMPLE}.gz`)).toString('latin1')
  return undefined
}

const HAS_NET_SMPP = spawnSync('perl', ['-MNet::SMPP', '-MJSON::PP', '-e', '1']).status === 0
const noNetSmpp = !HAS_NET_SMPP && `there is no Net::SMPP for Perl here; on Debian: ${INSTALL}`
const noSample =
  noNetSmpp || (readSample() === undefined && `there is no ${SAMPLE} here; on Debian: ${INSTALL.replace('install', 'install --reinstall')}`)

/** Runs it until the tests of the file are over. */
function startPerl(script: string) {
  const child = spawn('perl', [script], { stdio: ['ignore', 'pipe', 'pipe'] })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => {
    output.stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    output.stderr += chunk
  })
  after(() => child.kill('SIGKILL'))
  return output
}

/** The sample has its port written into it, so a copy with another one is run; nothing else of it is changed. */
async function startSample() {
  const sample = readSample() as string
  const port = await freePort()
  const copy = sample.replace('$port = 9900;', `$port = ${port};`)
  assert.notEqual(copy, sample, 'the sample names its port as it did')
  const dir = mkdtempSync(join(tmpdir(), 'herald-smsc-'))
  after(() => rmSync(dir, { recursive: true }))
  writeFileSync(join(dir, 'smsc.pl'), copy, 'latin1')
  const output = startPerl(join(dir, 'smsc.pl'))
  await until('the sample listens', () => output.stderr.includes('Entering accept loop'))
  return { port, output }
}

async function startPrintingSmsc() {
  const output = startPerl(fileURLToPath(new URL('net-smpp-smsc.pl', import.meta.url)))
  await until('it listens', () => output.stdout.includes('\n'))
  const printed = (): any[] =>
    output.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
  return { port: printed()[0].port as number, printed }
}

// What every submit of ours to this number has in common, by the names of Net::SMPP.
const COMMON = {
  command: 'submit_sm',
  service_type: '',
  dest_addr_ton: 1,
  dest_addr_npi: 1,
  destination_addr: '48500100200',
  protocol_id: 0,
  priority_flag: 0,
  schedule_delivery_time: '',
  validity_period: '310203040506700+',
  registered_delivery: 1,
  replace_if_present_flag: 0,
  sm_default_msg_id: 0,
}
const FROM_NAME = { source_addr_ton: 5, source_addr_npi: 0, source_addr: 'Herald' }
const FROM_NUMBER = { source_addr_ton: 1, source_addr_npi: 1, source_addr: '48600100200' }
const FROM_SHORT_CODE = { source_addr_ton: 3, source_addr_npi: 0, source_addr: '7055' }

describe('the SMPP carrier, against Net::SMPP of libnet-smpp-perl', () => {
  test('every field of a submit arrives as it was meant, octet by octet', { skip: noNetSmpp }, async () => {
    const { port, printed } = await startPrintingSmsc()
    const carrier = startCarrier(port, { host: 'localhost', systemType: 'VMA' })
    const submits = [
      { sender: 'Herald', text: 'Hi €_{' },
      { sender: '+48600100200', text: 'Zażółć 😀' },
      // The euro sign, two septets, is the first that does not fit into the first part; and so is the emoji, two units.
      { sender: 'Herald', text: `${'a'.repeat(152)}€${'b'.repeat(7)}` },
      { sender: '7055', text: `${'ł'.repeat(66)}😀łż!` },
    ].flatMap(({ sender, text }) =>
      splitText(text, 0x2a).map((piece) => part({ ...piece, sender, expiresAt: new Date('2031-02-03T04:05:06.789Z') })),
    )
    const outcomes = await Promise.all(submits.map((submit) => carrier.submit(submit)))
    await carrier.close()
    await until('it says goodbye', () => printed().at(-1)?.command === 'unbind')

    const [, bind, ...received] = printed()
    const expectedBind = { system_id: 'herald', password: PASSWORD, system_type: 'VMA', interface_version: 0x34, address_range: '' }
    assert.deepEqual(bind, { command: 'bind_transceiver', ...expectedBind, addr_ton: 0, addr_npi: 0 })
    assert.deepEqual(received, [
      { ...COMMON, ...FROM_NAME, esm_class: 0, data_coding: 0, short_message: '4869201b65111b28' },
      { ...COMMON, ...FROM_NUMBER, esm_class: 0, data_coding: 8, short_message: '005a0061017c00f3014201070020d83dde00' },
      { ...COMMON, ...FROM_NAME, esm_class: 0x40, data_coding: 0, short_message: `0500032a0201${'61'.repeat(152)}` },
      { ...COMMON, ...FROM_NAME, esm_class: 0x40, data_coding: 0, short_message: `0500032a02021b65${'62'.repeat(7)}` },
      { ...COMMON, ...FROM_SHORT_CODE, esm_class: 0x40, data_coding: 8, short_message: `0500032a0201${'0142'.repeat(66)}` },
      { ...COMMON, ...FROM_SHORT_CODE, esm_class: 0x40, data_coding: 8, short_message: '0500032a0202d83dde000142017c0021' },
      { command: 'unbind' },
    ])
    assert.deepEqual(
      outcomes,
      submits.map((_, index) => ({ is: 'sent', carrierMessageId: `perl-${index + 1}` })),
    )
  })
})

describe('the SMPP carrier, against the sample SMSC of libnet-smpp-perl', () => {
  test('binds, submits names, numbers, parts and UCS-2, keeps the link alive, and unbinds', { skip: noSample }, async () => {
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
