import { saveCsv } from '../../../app/save-csv.ts'
import type { Imported } from './rewrite.ts'

type Rejected = Imported['rejected']

/** Enough to find the line by. */
const MAX_CHARACTERS = 2_000

const NAMES = ['line', 'reason', 'text']

/** Saves a CSV file of the rejected lines: the number of each, the reason, and its text. */
export async function saveRejected(file: File, rejected: Rejected): Promise<void> {
  const texts = await textsOf(file, rejected)
  const rows = rejected.map(({ line, reason }) => [line, reason, texts.get(line) ?? ''])
  saveCsv(`${file.name.replace(/\.\w+$/, '')}-rejected`, { names: NAMES, rows })
}

/** Reads the file again, a part at a time, up to the last of the lines. A file that has changed since has no texts. */
async function textsOf(file: File, rejected: Rejected): Promise<Map<number, string>> {
  const wanted = new Set(rejected.map(({ line }) => line))
  const last = Math.max(0, ...wanted)
  const texts = new Map<number, string>()
  let line = 1
  let begun = ''
  const end = () => {
    if (wanted.has(line)) texts.set(line, begun.replace(/\r$/, ''))
    begun = ''
    line += 1
  }
  try {
    // Typed without the iterator that streams of browsers have.
    const parts = file.stream().pipeThrough(new TextDecoderStream()) as unknown as AsyncIterable<string>
    for await (const part of parts) {
      const [first = '', ...others] = part.split('\n')
      begun = `${begun}${first}`.slice(0, MAX_CHARACTERS)
      for (const other of others) {
        end()
        begun = other.slice(0, MAX_CHARACTERS)
      }
      if (line > last) return texts
    }
    end()
  } catch {
    return new Map()
  }
  return texts
}
