import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { BuiltFiles } from '../../../console/build.ts'

// console/dist: what `npm run build` writes, and the service reads.

const ROOT = new URL('../../../', import.meta.url)
/** Names the sources of the build, and has their hash. */
const SOURCES = 'sources.json'

type Sources = { inputs: string[]; hash: string }

const distIn = (root: URL) => new URL('console/dist/', root)

/** Writes a build. `inputs`: the sources that it was made from, relative to the root of the repository. */
export function writeBuilt(files: BuiltFiles, inputs: string[], root = ROOT): void {
  const dist = distIn(root)
  rmSync(dist, { recursive: true, force: true })
  mkdirSync(dist, { recursive: true })
  for (const [path, contents] of files) writeFileSync(new URL(path || 'index.html', dist), contents)
  const sources: Sources = { inputs, hash: hashOf(inputs, root) as string }
  writeFileSync(new URL(SOURCES, dist), `${JSON.stringify(sources, undefined, 2)}\n`)
}

/** The build, unless there is none, or its sources have changed since. Where the sources are missing, any build is current. */
export function readBuilt(root = ROOT): BuiltFiles | undefined {
  const dist = distIn(root)
  if (!existsSync(new URL('index.html', dist))) return undefined
  if (existsSync(new URL('console/src/', root)) && !isCurrent(root)) return undefined
  const names = readdirSync(dist).filter((name) => name !== SOURCES)
  return new Map(names.map((name) => [name === 'index.html' ? '' : name, readFileSync(new URL(name, dist))]))
}

/** Compares contents, not times: a checkout or a copy gives files new times. */
function isCurrent(root: URL): boolean {
  const file = new URL(SOURCES, distIn(root))
  if (!existsSync(file)) return false
  const { inputs, hash } = JSON.parse(readFileSync(file, 'utf8')) as Sources
  return hashOf(inputs, root) === hash
}

/** Undefined: a source is missing. */
function hashOf(inputs: string[], root: URL): string | undefined {
  const hash = createHash('sha256')
  for (const path of inputs) {
    const file = new URL(path, root)
    if (!existsSync(file)) return undefined
    hash.update(`${path}\0`).update(createHash('sha256').update(readFileSync(file)).digest())
  }
  return hash.digest('hex')
}
