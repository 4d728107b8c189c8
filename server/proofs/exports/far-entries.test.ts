import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import { ZipFile } from 'yazl'
import { isFull, MOST_OF_ZIP32, mib, missingProgram, readArchive, say, temporaryDirectory, writeDown } from './support.ts'

// No campaign that fits a test has a file whose compressed content alone is over 4 GiB. So this is about the writer of archives alone, used
// as the export uses it (archive.ts): a stream of unknown length after another, each opened when the one before has ended.

const LINES_OF_BLOCK = 350
const LINE_LENGTH = 3_000
// Six of eight bits are random: deflating leaves three quarters.
const BLOCKS = isFull ? 5_800 : 8
const OPTIONS = { compressionLevel: 1, mtime: new Date() }

describe('an archive', { skip: missingProgram() }, () => {
  const how = isFull ? 'behind 4 GiB, after one of which more than that is left when it is compressed,' : 'behind another one'
  test(`with a file that begins ${how} is whole to unzip and to Python`, async () => {
    const block = randomLines()
    const zip = new ZipFile()
    zip.addBuffer(Buffer.from('first\r\n1\r\n'), 'small.csv', OPTIONS)
    zip.addReadStreamLazy('large.csv', OPTIONS, (give) => give(null, Readable.from(repeated(block))))
    zip.addReadStreamLazy('far.csv', OPTIONS, (give) => give(null, Readable.from([Buffer.from('text\r\n'), block])))
    zip.end()
    const path = join(temporaryDirectory(), 'far.zip')
    say(`the archive: ${mib(await writeDown('the archive', zip.outputStream as Readable, path))}`)

    const files = await readArchive(path)
    const found = [...files].map(([name, { size, rows, lengths }]) => ({ name, size, rows, lengths }))
    const ofBlocks = (name: string, blocks: number) => ({
      name,
      size: blocks * block.length + 'text\r\n'.length,
      rows: blocks * LINES_OF_BLOCK,
      lengths: { text: blocks * LINES_OF_BLOCK * LINE_LENGTH },
    })
    assert.deepEqual(found, [
      { name: 'small.csv', size: 10, rows: 1, lengths: { first: 1 } },
      ofBlocks('large.csv', BLOCKS),
      ofBlocks('far.csv', 1),
    ])
    if (!isFull) return
    assert.ok((files.get('large.csv')?.compressed ?? 0) > MOST_OF_ZIP32)
    assert.ok((files.get('far.csv')?.offset ?? 0) > MOST_OF_ZIP32)
  })
})

/** Deflating looks back 32 KiB at most: that a block of a MiB comes again and again makes it no smaller. */
function randomLines(): Buffer {
  const lines = Array.from({ length: LINES_OF_BLOCK }, () => `${randomBytes(LINE_LENGTH * 0.75).toString('base64')}\r\n`)
  return Buffer.from(lines.join(''))
}

function* repeated(block: Buffer): Generator<Buffer> {
  yield Buffer.from('text\r\n')
  for (let count = 0; count < BLOCKS; count += 1) yield block
}
