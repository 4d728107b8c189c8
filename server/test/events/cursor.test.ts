import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { BEGINNING, createCursors } from '../../src/events/cursor.ts'

const secret = randomBytes(32)
const { encode, decode } = createCursors(secret)

const account = fc.integer({ min: 1, max: 2 ** 31 - 1 })
const mark = fc.uint8Array({ minLength: 4, maxLength: 4 }).map((bytes) => Buffer.from(bytes).toString('hex'))
const place = fc.tuple(fc.maxSafeNat(), mark).map(([position, ending]) => ({ position, mark: ending }))

test('decodes to its place for its account, and has the same length for every place', () => {
  fc.assert(
    fc.property(account, place, (accountId, where) => {
      const cursor = encode(accountId, where)
      assert.deepEqual(decode(accountId, cursor), where)
      assert.equal(cursor.length, encode(1, BEGINNING).length)
      assert.match(cursor, /^[A-Za-z0-9_-]+$/)
    }),
  )
})

test('is the same for a place on every node and after every restart', () => {
  const again = createCursors(Buffer.from(secret))
  assert.equal(again.encode(7, { position: 12, mark: '0123abcd' }), encode(7, { position: 12, mark: '0123abcd' }))
  assert.notEqual(encode(7, { position: 12, mark: '0123abcd' }), encode(8, { position: 12, mark: '0123abcd' }))
})

test('rejects a cursor of another account or another installation', () => {
  const other = createCursors(randomBytes(32))
  fc.assert(
    fc.property(account, account, place, (accountId, stranger, where) => {
      fc.pre(accountId !== stranger)
      assert.equal(decode(stranger, encode(accountId, where)), undefined)
      assert.equal(decode(accountId, other.encode(accountId, where)), undefined)
    }),
  )
})

test('rejects a cursor that is changed in a bit, cut, extended or encoded differently', () => {
  const cursor = encode(7, { position: 12, mark: '0123abcd' })
  const bytes = Buffer.from(cursor, 'base64url')
  for (let bit = 0; bit < bytes.length * 8; bit += 1) {
    const changed = Buffer.from(bytes)
    changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3)
    assert.equal(decode(7, changed.toString('base64url')), undefined, `bit ${bit}`)
  }
  for (let length = 0; length < cursor.length; length += 1) assert.equal(decode(7, cursor.slice(0, length)), undefined)
  // The last character has bits that belong to no byte.
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const others = [...alphabet].map((letter) => cursor.slice(0, -1) + letter).filter((each) => each !== cursor)
  for (const other of [...others, `${cursor}A`, `${cursor}=`, ` ${cursor}`, `${cursor} `, `${cursor.slice(0, 9)}\n${cursor.slice(9)}`]) {
    assert.equal(decode(7, other), undefined, other)
  }
})
