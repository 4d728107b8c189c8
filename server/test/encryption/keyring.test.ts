import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import { keyLine, newKeyFile } from './support.ts'

const PLAIN = Buffer.from('whsec_of-a-test')

describe('a keyring', () => {
  test('encrypts with the first key of the file, each time differently, and decrypts with all keys', () => {
    const [old, next] = [keyLine('old'), keyLine('next')]
    const file = newKeyFile(old)
    const before = file.load().encrypt('secrets:a', PLAIN)
    file.write(next, old)
    const keyring = file.load()
    const values = [keyring.encrypt('secrets:a', PLAIN), keyring.encrypt('secrets:a', PLAIN)]
    assert.deepEqual(
      [before, ...values].map(({ keyId }) => keyId),
      ['old', 'next', 'next'],
    )
    for (const encrypted of [before, ...values]) assert.deepEqual(keyring.decrypt('secrets:a', encrypted), PLAIN)
    assert.notDeepEqual(values[0]?.value, values[1]?.value)
    // A byte for the version, 96 bits of nonce, 128 bits of tag.
    assert.equal(before.value.length, 1 + 12 + 16 + PLAIN.length)
  })

  test('rejects a value that was moved to another row, changed, truncated, or encrypted by another key of the same id', () => {
    const file = newKeyFile(keyLine('a'))
    const keyring = file.load()
    const { keyId, value } = keyring.encrypt('webhook_secrets:1', PLAIN)
    const refused = { name: 'Error', message: /^The secret webhook_secrets:\d can't be decrypted: the key a in .* is not the one/ }
    assert.throws(() => keyring.decrypt('webhook_secrets:2', { keyId, value }), refused)
    for (const index of value.keys()) {
      const changed = Buffer.from(value)
      changed[index] = (changed[index] as number) ^ 1
      assert.throws(() => keyring.decrypt('webhook_secrets:1', { keyId, value: changed }), refused)
    }
    for (const length of [0, 1, 28, value.length - 1]) {
      assert.throws(() => keyring.decrypt('webhook_secrets:1', { keyId, value: value.subarray(0, length) }), refused)
    }
    file.write(keyLine('a'))
    assert.throws(() => file.load().decrypt('webhook_secrets:1', { keyId, value }), refused)
  })

  test('of a running process reads keys that were added to the file, and encrypts with the first', () => {
    const [old, next] = [keyLine('old'), keyLine('next')]
    const file = newKeyFile(old)
    const running = file.load()
    const before = running.encrypt('secrets:a', PLAIN)
    file.write(next, old)
    assert.deepEqual(running.decrypt('secrets:a', file.load().encrypt('secrets:a', PLAIN)), PLAIN)
    assert.equal(running.encrypt('secrets:a', PLAIN).keyId, 'next')
    writeFileSync(file.path, 'half of a li')
    assert.deepEqual(running.decrypt('secrets:a', before), PLAIN, 'a partly written file changes nothing')
    assert.equal(running.encrypt('secrets:a', PLAIN).keyId, 'next')
  })

  test('names a missing key and the file', () => {
    const file = newKeyFile(keyLine('a'))
    const message = `The database has secrets that are encrypted with the key b, which is not in ${file.path}. All nodes and commands need the same key file: copy it from a node that works, or from the backup, and set HERALD_ENCRYPTION_KEY_FILE to its path.`
    assert.throws(() => file.load().decrypt('secrets:a', { keyId: 'b', value: Buffer.alloc(40) }), { message })
  })

  test('shows no key when it is printed', () => {
    const line = keyLine('a')
    const shown = inspect(newKeyFile(line).load(), { depth: 10, showHidden: true })
    assert.ok(!shown.includes(line.split(':')[1] as string))
  })
})
