import assert from 'node:assert/strict'
import { crc32, inflateRawSync } from 'node:zlib'
import { parse } from 'csv-parse/sync'

/** A file as it came, held against RFC 4180: a header, lines that end with CRLF, as many cells in each, and no byte-order mark. */
export function readCsv(text: string): Record<string, string>[] {
  assert.ok(text.endsWith('\r\n') && !text.startsWith('\ufeff'))
  const rows = parse(text, { record_delimiter: '\r\n', relax_column_count: false, bom: false }) as string[][]
  const [names = [], ...lines] = rows
  return lines.map((cells) => Object.fromEntries(names.map((name, index) => [name, cells[index] as string])))
}

const END = 0x06054b50
const ENTRY = 0x02014b50

/** The files of an archive, by its directory, each held against its checksum. Small ones: what is large is for the proofs. */
export function readZip(archive: Buffer): Map<string, string> {
  const end = archive.lastIndexOf(Buffer.from(Uint32Array.of(END).buffer))
  assert.ok(end >= 0, 'an archive that is whole has an end')
  const files = new Map<string, string>()
  let at = archive.readUInt32LE(end + 16)
  for (let left = archive.readUInt16LE(end + 10); left > 0; left -= 1) {
    assert.equal(archive.readUInt32LE(at), ENTRY)
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map((field) => archive.readUInt16LE(at + field)) as [
      number,
      number,
      number,
    ]
    const name = archive.toString('utf8', at + 46, at + 46 + nameLength)
    const local = archive.readUInt32LE(at + 42)
    const begin = local + 30 + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28)
    const content = inflateRawSync(archive.subarray(begin, begin + archive.readUInt32LE(at + 20)))
    assert.equal(crc32(content), archive.readUInt32LE(at + 16), `the checksum of ${name}`)
    files.set(name, content.toString('utf8'))
    at += 46 + nameLength + extraLength + commentLength
  }
  return files
}
