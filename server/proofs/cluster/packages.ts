import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

// The embedded binaries have neither pg_basebackup nor what a standby needs beside it; a cluster is what people install from their system.

const VERSIONS = '/usr/lib/postgresql'
const PROGRAMS = ['initdb', 'postgres', 'pg_basebackup']
/** As Debian has it; it brings pg_basebackup along, which is in postgresql-client-15. */
const INSTALL = 'apt-get install postgresql-15   (or a later one, up to 18; as root, on Debian or Ubuntu)'

export type Installed = { version: number; binDir: string }

/** The newest PostgreSQL of Debian's packages, or a sentence that says what is missing. */
export function findPostgres(): Installed | string {
  const versions = existsSync(VERSIONS) ? readdirSync(VERSIONS).filter((name) => /^\d+$/.test(name)) : []
  const found = versions
    .map(Number)
    .toSorted((a, b) => b - a)
    .map((version) => ({ version, binDir: join(VERSIONS, String(version), 'bin') }))
  const whole = found.find(({ binDir }) => PROGRAMS.every((program) => existsSync(join(binDir, program))))
  if (whole !== undefined) return whole
  const missing = PROGRAMS.filter((program) => !found.some(({ binDir }) => existsSync(join(binDir, program))))
  return `A PostgreSQL with a standby is needed, and ${VERSIONS} has no version with all of ${PROGRAMS.join(', ')} (missing: ${missing.join(', ')}).\nInstall it with: ${INSTALL}`
}
