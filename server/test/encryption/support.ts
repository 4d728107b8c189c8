import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { newKeyLine } from '../../src/encryption/key-file.ts'
import { type Keyring, loadKeyring } from '../../src/encryption/keyring.ts'

export function newDirectory(): string {
  const dir = mkdtempSync(join(tmpdir(), 'herald-encryption-'))
  after(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** A line with this id and a new key. */
export function keyLine(id: string): string {
  return newKeyLine().replace(/^[^:]+/, id)
}

export type KeyFile = { path: string; write: (...lines: string[]) => void; load: () => Keyring }

/** A key file that a test rewrites as an operator would. */
export function newKeyFile(...lines: string[]): KeyFile {
  const path = join(newDirectory(), 'keys')
  const write = (...next: string[]) => writeFileSync(path, `${next.join('\n')}\n`, { mode: 0o600 })
  write(...lines)
  return { path, write, load: () => loadKeyring({ databaseUrl: undefined, dataDir: '', encryptionKeyFile: path }) }
}
