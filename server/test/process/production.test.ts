import assert from 'node:assert/strict'
import { chownSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { createTestDatabase } from '../support/database.ts'
import { SETPRIV } from '../support/embedded.ts'
import { createDataDir, runHeraldProcess, startHerald } from '../support/process.ts'
import { call } from '../support/service.ts'

const { url: HERALD_DATABASE_URL } = await createTestDatabase()
const isRoot = process.getuid?.() === 0
const NOBODY = 65534

/** A user who is not root and may enter the directory of the database's socket. */
function ordinaryUser(): number {
  const socketDir = new URL(HERALD_DATABASE_URL).searchParams.get('host')
  const owner = socketDir?.startsWith('/') ? statSync(socketDir).uid : NOBODY
  return owner === 0 ? NOBODY : owner
}

/** An SMPP carrier that nobody listens for: the service looks for it, and serves meanwhile. */
async function carriersFile(mode: number): Promise<string> {
  const path = join(await createDataDir(), 'carriers.json')
  const carriers = { smsc: { type: 'smpp', host: '127.0.0.1', port: 1, systemId: 'herald', password: 'secret' } }
  writeFileSync(path, JSON.stringify(carriers), { mode })
  return path
}

describe('herald serve with HERALD_ENV=production', () => {
  test('exits with all reasons at once, and creates nothing', async () => {
    const dataDir = join(await createDataDir(), 'untouched')
    const { code, stdout, stderr } = await runHeraldProcess(['serve'], {
      HERALD_ENV: 'production',
      HERALD_DATA_DIR: dataDir,
      HERALD_HOST: '0.0.0.0',
      HERALD_PORT: '0',
      HERALD_CARRIERS: await carriersFile(0o644),
    })
    assert.deepEqual([code, stdout], [1, ''])
    const [first, ...reasons] = stderr.trim().split('\n')
    assert.equal(first, 'HERALD_ENV=production refuses to start:')
    const expected = [
      /^HERALD_DATABASE_URL must /,
      /^HERALD_TLS_CERT and HERALD_TLS_KEY must /,
      /^HERALD_CARRIERS .*chmod 600 on \S+carriers\.json/,
    ]
    if (isRoot) expected.push(/^Herald must not run as root/)
    assert.equal(reasons.length, expected.length, stderr)
    for (const [index, pattern] of expected.entries()) assert.match(reasons[index] ?? '', pattern)
    assert.equal(existsSync(dataDir), false)
  })

  test('does not restrict other commands', async () => {
    const { code } = await runHeraldProcess(['account', 'list'], { HERALD_ENV: 'production', HERALD_DATABASE_URL })
    assert.equal(code, 0)
  })

  test('serves with safe settings, and creates no demo account', {
    skip: isRoot && !existsSync(SETPRIV) && 'needs setpriv to run as another user than root',
  }, async () => {
    const uid = ordinaryUser()
    const wrapper = isRoot ? [SETPRIV, `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'] : []
    const HERALD_DATA_DIR = join(await createDataDir(), 'data')
    mkdirSync(HERALD_DATA_DIR, { mode: 0o700 })
    const HERALD_CARRIERS = join(HERALD_DATA_DIR, 'carriers.json')
    writeFileSync(HERALD_CARRIERS, readFileSync(await carriersFile(0o600)), { mode: 0o600 })
    const HERALD_ENCRYPTION_KEY_FILE = join(HERALD_DATA_DIR, 'keys')
    writeFileSync(HERALD_ENCRYPTION_KEY_FILE, readFileSync(process.env.HERALD_TEST_KEY_FILE as string), { mode: 0o600 })
    const files = [join(HERALD_DATA_DIR, '..'), HERALD_DATA_DIR, HERALD_CARRIERS, HERALD_ENCRYPTION_KEY_FILE]
    if (isRoot) for (const path of files) chownSync(path, uid, uid)
    const env = { HERALD_ENV: 'production', HERALD_DATABASE_URL, HERALD_DATA_DIR, HERALD_CARRIERS, HERALD_ENCRYPTION_KEY_FILE }
    const herald = await startHerald(env, wrapper, ['serve'])
    assert.equal((await call(`${herald.url}/readyz`)).status, 200)
    assert.doesNotMatch(herald.output.stderr, /demo|simulated/)
    // Standard error is no terminal here, so it may be a log.
    assert.match(herald.output.stderr, /^There is no operator yet\. .*: npx herald user create EMAIL --name NAME --operator$/m)
    assert.doesNotMatch(herald.output.stderr, /setup=/)
    herald.child.kill('SIGTERM')
    assert.equal(await herald.ended, 0)
  })
})
