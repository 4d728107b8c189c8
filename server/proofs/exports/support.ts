import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

// Archives, read by programs that share no line with us: unzip, and Python's zipfile.

// The short run shows in seconds that the proofs work; HERALD_PROOF=full makes archives as large as the promises are.
export const isFull = process.env.HERALD_PROOF === 'full'

export const GIB = 2 ** 30
/** What four bytes can say of a size or an offset; above it an archive has to be Zip64. */
export const MOST_OF_ZIP32 = 4 * GIB - 1

const SHOWN_EVERY_BYTES = 256 * 2 ** 20
const startedAt = performance.now()

/** For the person who waits. */
export function say(sentence: string): void {
  console.error(`${((performance.now() - startedAt) / 1000).toFixed(1).padStart(7)} s  ${sentence}`)
}

/** Why a proof is skipped: a program is not there. Where CI says so, it is not skipped: CI sees to it that they are there. */
export function missingProgram(): string | false {
  const missing = [
    ['unzip', '-v'],
    ['python3', '--version'],
  ].filter(([program = '', ...args]) => !runs(program, args))
  if (missing.length === 0 || process.env.CI !== undefined) return false
  return `needs ${missing.map(([program]) => program).join(' and ')}: apt-get install unzip python3`
}

function runs(program: string, args: string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Removed when the test file ends. */
export function temporaryDirectory(): string {
  const dir = mkdtempSync(join(tmpdir(), 'herald-proof-'))
  after(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** Returns how many bytes there were. */
export async function writeDown(what: string, source: Readable, path: string): Promise<number> {
  let bytes = 0
  const watch = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      const before = bytes
      bytes += chunk.length
      if (Math.floor(bytes / SHOWN_EVERY_BYTES) > Math.floor(before / SHOWN_EVERY_BYTES)) say(`${what}: ${mib(bytes)} written down`)
      done(null, chunk)
    },
  })
  await pipeline(source, watch, createWriteStream(path))
  return bytes
}

export const mib = (bytes: number) => `${Math.round(bytes / 2 ** 20).toLocaleString('en')} MiB`

/** `lengths`: how many characters each column of the CSV has in all its records. */
export type ReadFile = {
  size: number
  sizeSaid: number
  compressed: number
  offset: number
  lines: number
  lineFeeds: number
  rows: number
  lengths: Record<string, number>
}

/** Every file of it to its end, by both programs, which hold its content against its CRC. */
export async function readArchive(path: string): Promise<Map<string, ReadFile>> {
  say('unzip -t')
  const { stdout } = await promisify(execFile)('unzip', ['-t', path])
  assert.match(stdout, /No errors detected/)
  say('Python’s zipfile')
  const program = fileURLToPath(new URL('./read-archive.py', import.meta.url))
  const read = await promisify(execFile)('python3', [program, path])
  const files = new Map(Object.entries(JSON.parse(read.stdout) as Record<string, ReadFile>))
  for (const [name, { size, sizeSaid, compressed, offset, rows }] of files) {
    say(`${name}: ${rows.toLocaleString('en')} records, ${mib(size)}, ${mib(compressed)} compressed, from ${mib(offset)} on`)
    assert.equal(size, sizeSaid)
  }
  return files
}
