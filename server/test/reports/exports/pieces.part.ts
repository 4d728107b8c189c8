import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRewriter } from '../../../src/reports/exports/csv.ts'

test('a file is handed on in pieces of 64 KiB, however it comes in, and at its worst: nothing but ends of lines, or formulas', () => {
  const files = [
    '2026-11-15 19:00:00+00,"a b"\n'.repeat(20_000),
    '\n'.repeat(300_000),
    `"${'x y\n'.repeat(100_000)}",2026-11-15 19:00:00.5+00\n`,
    `"${';='.repeat(100_000)}","${';＝\n'.repeat(50_000)}"\n`,
  ]
  for (const file of files.map((text) => Buffer.from(text))) {
    for (const size of [1_000, 8_192, 65_536, file.length]) {
      const pieces: Buffer[] = []
      const { write, rest } = createRewriter((piece) => pieces.push(piece))
      for (let at = 0; at < file.length; at += size) write(file.subarray(at, at + size))
      for (const piece of pieces) assert.ok(piece.length > 63 * 1024 && piece.length <= 64 * 1024, `${piece.length}`)
      const lineEnds = (bytes: Buffer) => bytes.reduce((count, byte) => count + Number(byte === 0x0a), 0)
      assert.equal(lineEnds(Buffer.concat([...pieces, rest()])), lineEnds(file))
    }
  }
})

test('a piece that was handed on is never changed by what follows', () => {
  const pieces: Buffer[] = []
  const copies: Buffer[] = []
  const { write } = createRewriter((piece) => {
    pieces.push(piece)
    copies.push(Buffer.from(piece))
  })
  for (let n = 0; n < 30; n += 1) write(Buffer.from(`${n},2026-11-15 19:00:00+00\n`.repeat(1_000)))
  assert.ok(pieces.length > 5)
  assert.deepEqual(pieces, copies)
})
