import * as say from '../../../words/en-import.ts'
import { type Columns, guessColumns } from './columns.ts'
import { type FileHead, readHead } from './file-head.ts'

/** A file with its first lines and what its columns have. */
export type Chosen = { file: File; head: FileHead; columns: Columns }

/** Reads the begin of a file. Returns a sentence if the file can't be imported. */
export async function readFile(file: File): Promise<Chosen | string> {
  const head = await readHead(file).catch(() => say.unreadable)
  if (typeof head === 'string') return head
  const first = head?.records[0]
  if (head === undefined || first === undefined) return say.empty(file.name)
  if ('problem' in first) return say.unreadableHeader(file.name, first.problem)
  return { file, head, columns: guessColumns(head) }
}
