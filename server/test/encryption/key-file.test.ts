import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { loadConfig } from '../../src/config.ts'
import { keyFilePath, newKeyLine, parseKeys } from '../../src/encryption/key-file.ts'
import { isReadableByOthers } from '../../src/files.ts'
import { keyLine, newDirectory, newKeyFile } from './support.ts'

const KEYRING = fileURLToPath(new URL('../../src/encryption/keyring.ts', import.meta.url))
const idsOf = (text: string) => parseKeys(text).map(({ id }) => id)

describe('a key file', () => {
  test('has one key per line, in order, and ignores comments, blank lines and Windows line endings', () => {
    const [a, b] = [keyLine('2026-11'), keyLine('old.key_1')]
    assert.deepEqual(idsOf(`# of production\r\n\r\n${a}\r\n  ${b}  \n\n`), ['2026-11', 'old.key_1'])
    assert.match(newKeyLine(), /^\d{4}-\d{2}-[0-9a-f]{6}:[A-Za-z0-9+/]{43}=$/)
    assert.equal(idsOf(newKeyLine()).length, 1)
  })

  const CANARY = 'Q0FOQVJZ'
  const wrong: [what: string, lines: string[], problem: RegExp][] = [
    ['is empty', ['# nothing'], /it must have at least one line with an id of letters/],
    [
      'has a key that is too short',
      [keyLine('a'), `b:${CANARY}`],
      /line 2 must be an id of letters, digits, .* a colon and 32 bytes in base64/,
    ],
    ['has no id', [`${CANARY.repeat(6).slice(0, 43)}=`], /line 1 must be an id/],
    ['has an id with a space', [keyLine('a b')], /line 1 must be an id/],
    ['has an id twice', [keyLine('a'), '', keyLine('a')], /line 3 must have an id of its own/],
    [
      'has a key twice',
      ['a', 'b'].map((id) => `${id}:${Buffer.alloc(32, CANARY).toString('base64')}`),
      /line 2 must have a key of its own/,
    ],
  ]
  for (const [what, lines, problem] of wrong) {
    test(`that ${what} stops the start, and the error names the variable and the line, but no key`, () => {
      const { path } = newKeyFile(...lines)
      assert.throws(
        () => loadConfig({ HERALD_ENCRYPTION_KEY_FILE: path, HERALD_PORT: 'x' }),
        (error: Error) => {
          const [port, keyFile] = error.message.split('\n')
          assert.match(port ?? '', /^HERALD_PORT must be/)
          assert.match(keyFile ?? '', /^HERALD_ENCRYPTION_KEY_FILE must be the path of a key file, and /)
          assert.match(keyFile ?? '', problem)
          assert.ok(!lines.some((line) => line.length > 8 && error.message.includes(line.split(':').at(-1) as string)))
          return true
        },
      )
    })
  }

  test('that does not exist stops the start, and the error names the variable', () => {
    assert.throws(() => loadConfig({ HERALD_ENCRYPTION_KEY_FILE: '/nowhere/keys' }), {
      message: 'HERALD_ENCRYPTION_KEY_FILE must be the path of a file that can be read.',
    })
  })

  test('is beside the embedded database, or in the home directory for another database', () => {
    const settings = { databaseUrl: undefined, dataDir: '/data', encryptionKeyFile: undefined }
    assert.equal(keyFilePath(settings), '/data/encryption.key')
    const [home, noHome] = [newDirectory(), '/nowhere']
    const before = process.env.HOME
    try {
      process.env.HOME = home
      assert.equal(keyFilePath({ ...settings, databaseUrl: 'postgres://x' }), join(home, '.herald', 'encryption.key'))
      process.env.HOME = noHome
      assert.equal(keyFilePath({ ...settings, databaseUrl: 'postgres://x' }), '/data/encryption.key')
    } finally {
      process.env.HOME = before
    }
    assert.equal(keyFilePath({ ...settings, databaseUrl: 'postgres://x', encryptionKeyFile: '/keys' }), '/keys')
  })

  test('is created once by eight concurrent processes, readable by its owner only', async () => {
    const dataDir = join(newDirectory(), 'not', 'there')
    const program = `import { loadKeyring } from ${JSON.stringify(KEYRING)}
      console.log(loadKeyring({ dataDir: ${JSON.stringify(dataDir)} }).keyIds()[0])`
    const runs = Array.from({ length: 8 }, () => promisify(execFile)(process.execPath, ['--input-type=module-typescript', '-e', program]))
    const ids = (await Promise.all(runs)).map(({ stdout }) => stdout.trim())
    assert.deepEqual(new Set(ids), new Set(idsOf(readFileSync(join(dataDir, 'encryption.key'), 'utf8'))))
    assert.deepEqual(readdirSync(dataDir), ['encryption.key'])
    assert.equal(statSync(join(dataDir, 'encryption.key')).mode & 0o777, 0o600)
  })

  test('that others may read is detected', () => {
    const path = join(newDirectory(), 'keys')
    writeFileSync(path, '', { mode: 0o600 })
    const readable = [0o600, 0o640, 0o604, 0o400, 0o611].map((mode) => {
      chmodSync(path, mode)
      return isReadableByOthers(path)
    })
    assert.deepEqual(readable, [false, false, true, false, false])
  })
})
