import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { createTestDatabase } from '../../../test/support/database.ts'
import { freePort } from '../../../test/support/ports.ts'
import { createDataDir, type HeraldProcess, runHerald, startHerald, startLastingHerald } from '../../../test/support/process.ts'
import { call } from '../../../test/support/service.ts'
import { startSimulator } from '../../../test/support/simulator.ts'
import { until } from '../../../test/support/until.ts'

const PHONE = '+48500100200'

function simulatorUrl(output: { stderr: string }): string {
  return /phones get is at (\S+)\/simulator\/phones\./.exec(output.stderr)?.[1] ?? assert.fail(`no simulator in: ${output.stderr}`)
}

async function isUp(url: string): Promise<boolean> {
  return await fetch(`${url}/simulator/counts`).then(
    ({ ok }) => ok,
    () => false,
  )
}

async function reply(simulator: string, text: string): Promise<void> {
  const body = { agentId: 'demo-single', text }
  const { status, body: response } = await call(`${simulator}/simulator/phones/${PHONE}/reply`, { method: 'POST', body })
  assert.ok(status < 300, JSON.stringify(response))
}

describe('the simulated network of herald serve without a configured carrier', { concurrency: 2 }, () => {
  test('accepts messages and sends events, is restarted after a kill, and ends with the service', async () => {
    const { url: HERALD_DATABASE_URL, pool } = await createTestDatabase()
    const dataDir = await createDataDir()
    const port = await freePort()
    const env = { HERALD_DATABASE_URL, HERALD_DATA_DIR: dataDir, HERALD_SIMULATOR_PORT: `${port}`, HERALD_SIMULATOR_DELAY_MS: '0' }
    /** The replies; what they say is gone once they are processed. */
    async function written(): Promise<object[]> {
      return (await pool.query<{ carrier: string; kind: string }>('select carrier, kind from carrier_events')).rows
    }

    const first = await startHerald(env, [], ['serve'])
    const simulator = simulatorUrl(first.output)
    assert.equal(new URL(simulator).port, `${port}`)
    await until('RCS is connected', () => first.output.stdout.includes('authenticated with the RCS network'))
    await until('SMS is connected', () => first.output.stdout.includes('bound to the SMS network'))
    await reply(simulator, 'one')
    await until('the first reply is kept', async () => (await written()).length === 1)

    assert.deepEqual(await written(), [{ carrier: 'simulator', kind: 'wrote' }])

    // The network is killed, and starts again at the same address.
    process.kill(simulatorPid(dataDir), 'SIGKILL')
    await until('it is down', async () => !(await isUp(simulator)))
    await until('it is up', () => isUp(simulator))
    await reply(simulator, 'two')
    await until('the second reply is kept', async () => (await written()).length === 2)

    // The service is killed: its network ends too, and starts with the next service.
    first.child.kill('SIGKILL')
    await first.ended
    await until('it is gone too', async () => !(await isUp(simulator)))
    const second = await startHerald(env, [], ['serve'])
    assert.equal(simulatorUrl(second.output), simulator)
    await reply(simulator, 'three')
    await until('the third reply is kept', async () => (await written()).length === 3)

    second.child.kill('SIGINT')
    assert.equal(await second.ended, 0)
    assert.equal(await isUp(simulator), false)
    assert.doesNotMatch(second.output.stdout, /network ended/)
  })

  test('does not start if a carriers file is configured', async () => {
    const { url: HERALD_DATABASE_URL } = await createTestDatabase()
    const { settings } = await startSimulator()
    const dataDir = await createDataDir()
    const file = join(dataDir, 'carriers.json')
    const [{ name, messagesPerSecond, isSimulator, ...google }] = settings.rcs as [(typeof settings.rcs)[number]]
    writeFileSync(file, JSON.stringify({ [name]: { type: 'google-rbm', ...google } }))
    const herald = await startHerald({ HERALD_DATABASE_URL, HERALD_DATA_DIR: join(dataDir, 'data'), HERALD_CARRIERS: file }, [], ['serve'])
    await until('RCS is connected', () => herald.output.stdout.includes('authenticated with the RCS network'))
    assert.doesNotMatch(herald.output.stderr, /simulated network/)
    assert.throws(() => statSync(join(dataDir, 'data', 'simulator')))
  })

  describe('runs with a process that delivers', { concurrency: 1 }, async () => {
    const { url: HERALD_DATABASE_URL } = await createTestDatabase()
    const env = { HERALD_DATABASE_URL, HERALD_DATA_DIR: await createDataDir(), HERALD_PORT: '0' }
    let starting: Promise<HeraldProcess> | undefined
    function startedDelivery(): Promise<HeraldProcess> {
      starting ??= startLastingHerald(env, ['serve', '--only', 'delivery'])
      return starting
    }

    test('and not with a process that has only the role api', async () => {
      const delivery = await startedDelivery()
      assert.match(delivery.output.stderr, /^Herald is ready at http:\/\/127\.0\.0\.1:\d+; Ctrl-C stops it\.\n/)
      assert.equal((await call(`${delivery.url}/v1/agents`)).status, 404)
      assert.equal((await call(`${delivery.url}/healthz`)).status, 200)
      assert.ok(await isUp(simulatorUrl(delivery.output)))
      const api = await startHerald(env)
      assert.equal((await call(`${api.url}/v1/agents`)).status, 401)
      assert.doesNotMatch(api.output.stderr, /simulated network/)
      api.child.kill('SIGINT')
      assert.equal(await api.ended, 0)
    })

    test('once per data directory; a second service there, or a file in its place, is reported with a readable error', async () => {
      const delivery = await startedDelivery()
      const second = await runHerald(['serve'], env)
      assert.equal(second.code, 1)
      assert.match(
        second.stderr,
        /^The simulated network did not start: Another simulator is running in .*\nGive it a HERALD_DATA_DIR of its own, /,
      )
      assert.ok(await isUp(simulatorUrl(delivery.output)))
      delivery.child.kill('SIGINT')
      assert.equal(await delivery.ended, 0)

      const blocked = await createDataDir()
      writeFileSync(join(blocked, 'simulator'), '')
      const third = await runHerald(['serve'], { ...env, HERALD_DATA_DIR: blocked })
      assert.equal(third.code, 1)
      assert.match(third.stderr, /^The simulated network can't keep its data in .*: .*\.\n$/)
    })
  })

  test('listens on another port than 8081 if that is in use, and fails if the configured port is', async (t) => {
    const { url: HERALD_DATABASE_URL } = await createTestDatabase()
    const [taken, other] = [createServer().listen(0, '127.0.0.1'), createServer().listen(8081, '127.0.0.1')]
    t.after(() => {
      for (const server of [taken, other]) server.close()
    })
    // Another program may have 8081.
    await Promise.all([once(taken, 'listening'), once(other, 'listening').catch(() => {})])
    const { port } = taken.address() as { port: number }
    const env = { HERALD_DATABASE_URL, HERALD_DATA_DIR: await createDataDir() }
    const refused = await runHerald(['serve'], { ...env, HERALD_PORT: '0', HERALD_SIMULATOR_PORT: `${port}` })
    assert.match(refused.stderr, new RegExp(`^Port ${port} is in use: HERALD_SIMULATOR_PORT must name a free port, or 0 for any\\.\n`))
    const herald = await startHerald({ ...env, HERALD_SIMULATOR_PORT: '' }, [], ['serve'])
    assert.notEqual(new URL(simulatorUrl(herald.output)).port, '8081')
    herald.child.kill('SIGTERM')
    assert.equal(await herald.ended, 0)
  })

  test('does not start with an invalid carriers file, which is reported before anything is created', async () => {
    const dataDir = await createDataDir()
    const file = join(dataDir, 'carriers.json')
    writeFileSync(file, JSON.stringify({ google: { type: 'gogle-rbm' } }))
    const { code, stderr } = await runHerald(['serve'], { HERALD_DATA_DIR: join(dataDir, 'data'), HERALD_CARRIERS: file })
    assert.equal(code, 2)
    assert.equal(stderr, `HERALD_CARRIERS: ${file} /google/type must be google-rbm or smpp.\n`)
    assert.throws(() => statSync(join(dataDir, 'data')))
  })
})

/** The process with the simulator's data directory among its arguments. */
function simulatorPid(dataDir: string): number {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    const commandLine = readCommandLine(pid)
    if (commandLine.includes('herald-simulator.js') && commandLine.includes(join(dataDir, 'simulator'))) return Number(pid)
  }
  return assert.fail('no simulator runs')
}

function readCommandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}
