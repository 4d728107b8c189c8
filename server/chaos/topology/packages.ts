import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

// The embedded binaries have no pg_basebackup, so a cluster needs the PostgreSQL of the system.

const VERSIONS = '/usr/lib/postgresql'
const PROGRAMS = ['initdb', 'postgres', 'pg_basebackup']
const INSTALL = 'apt-get install postgresql-15   (or a later one, up to 18; as root, on Debian or Ubuntu)'

/** The newest PostgreSQL of Debian's packages, or a sentence that says what is missing. */
export function findPostgres(): { version: number; binDir: string } | string {
  const versions = existsSync(VERSIONS) ? readdirSync(VERSIONS).filter((name) => /^\d+$/.test(name)) : []
  const found = versions
    .map(Number)
    .toSorted((a, b) => b - a)
    .map((version) => ({ version, binDir: join(VERSIONS, String(version), 'bin') }))
  const complete = found.find(({ binDir }) => PROGRAMS.every((program) => existsSync(join(binDir, program))))
  return complete ?? `A PostgreSQL with ${PROGRAMS.join(', ')} is needed, and ${VERSIONS} has none.\nInstall it with: ${INSTALL}`
}
