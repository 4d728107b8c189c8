import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { keep } from './clean-up.ts'

/** Removed with its content when the part or the program ends, unless the caller removes it before. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'herald-bench-'))
  void keep(() => remove(directory))
  return directory
}

export function remove(directory: string): void {
  rmSync(directory, { recursive: true, force: true })
}
