import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { loadConfig, readSettings } from '../../src/config.ts'
import { runHerald } from '../support/process.ts'

const directory = mkdtempSync(join(tmpdir(), 'herald-config-'))
after(() => rmSync(directory, { recursive: true }))

const URL_WITH_SECRETS = 'postgres://user:CANARY@db.example:5432/herald?sslpassword=CANARY&sslmode=require'

describe('herald config', () => {
  test('shows every setting with its value and source, and no secret', async () => {
    writeFileSync(join(directory, '.env'), `HERALD_PORT=1\nHERALD_LOG_LEVEL=warn\nHERALD_HOST=\n`)
    const env = { HERALD_DATABASE_URL: URL_WITH_SECRETS, HERALD_PORT: '8090', HERALD_DATABSE_URL: 'postgres://CANARY@x' }
    const { code, stdout, stderr } = await runHerald(['config', '--json'], env, directory)
    assert.deepEqual([code, stderr], [0, ''])
    assert.doesNotMatch(stdout, /CANARY/)
    const settings: { name: string; value: string | null; source: string }[] = JSON.parse(stdout)
    const of = (name: string) => Object.values(settings.find((setting) => setting.name === name) ?? {}).slice(1)
    const url = 'postgres://user:***@db.example:5432/herald?sslpassword=***&sslmode=require'
    assert.deepEqual(of('HERALD_DATABASE_URL'), [url, 'environment'])
    assert.deepEqual(of('HERALD_PORT'), ['8090', 'environment'])
    assert.deepEqual(of('HERALD_LOG_LEVEL'), ['warn', '.env'])
    assert.deepEqual(of('HERALD_HOST'), ['127.0.0.1', 'default'])
    assert.deepEqual(of('HERALD_LIMITS'), ['database', 'default'])
    assert.deepEqual(of('HERALD_DATA_DIR'), [join(directory, 'data'), 'default'])
    assert.deepEqual(of('HERALD_CARRIERS'), [null, 'default'])
    assert.deepEqual(of('HERALD_DATABSE_URL'), [null, 'not a setting'])
    const words = await runHerald(['config'], env, directory)
    assert.match(words.stdout, /^SETTING +VALUE +FROM\n/)
    assert.match(words.stdout, /\nHERALD_LOG_LEVEL +warn +\.env\n/)
    assert.doesNotMatch(words.stdout, /CANARY/)
  })

  test('names every wrong value, and shows none', async () => {
    const { code, stdout, stderr } = await runHerald(['config'], { HERALD_PORT: 'CANARY', HERALD_LIMITS: 'CANARY' })
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, /^HERALD_LIMITS must be .*\nHERALD_PORT must be .*\n$|^HERALD_PORT must be .*\nHERALD_LIMITS must be .*\n$/)
    assert.doesNotMatch(stderr, /CANARY/)
  })
})

test('the list of settings has each variable once, with the settings of the same environment', () => {
  const { config, settings } = readSettings({ HERALD_PORT: '9' })
  assert.deepEqual(config, loadConfig({ HERALD_PORT: '9' }))
  assert.equal(new Set(settings.map(({ name }) => name)).size, settings.length)
})
