import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { keep } from './clean-up.ts'

/** Removed with all that is in it, by whoever made it or in the end. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'herald-bench-'))
  void keep(() => remove(directory))
  return directory
}

export function remove(directory: string): void {
  rmSync(directory, { recursive: true, force: true })
}
