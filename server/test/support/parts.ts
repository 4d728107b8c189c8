import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

// A file has all the time that it wants, and so has a part; each of its tests has the limit that the command line sets.
const PART = { timeout: 3_600_000 }

/**
 * The tests of every `*.part.ts` in a directory, one file after the other, in this process. Each runs alone too, by its name. A file that is
 * a process of its own takes 0.9 s of a core to load the program, and as much to start a service, where its tests take a third of that.
 *
 * What a part has started ends with it. What parts share is loaded before them, by the file that calls this, and ends after the last one.
 */
export async function runParts(directory: string): Promise<void> {
  const names = readdirSync(directory).filter((name) => name.endsWith('.part.ts'))
  if (names.length === 0) throw new Error(`there is no part in ${directory}`)
  // All at once, of which node:test runs one at a time: where none is waiting, it takes the file for finished and ends what parts share.
  await Promise.all(names.sort().map((name) => test(name, PART, () => import(join(directory, name)))))
}
