import { execFileSync } from 'node:child_process'
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import type { Cleanup } from '../../../server/chaos/support/cleanup.ts'
import { ask, DATABASE, kill, makeEmpty, placeAt, startServer, urlOf } from '../../../server/chaos/topology/postgres-server.ts'
import { locateBinaries } from '../../../server/src/db/embedded/binaries.ts'
import { unprivilegedIdentity } from '../../../server/src/db/embedded/identity.ts'
import { migrate } from '../../../server/src/db/migrate.ts'
import { ensurePartitions } from '../../../server/src/db/partitions.ts'
import { createOwnerPool, createPool } from '../../../server/src/db/pool.ts'

const STANDBY = 'standby'

/**
 * A primary with Herald's schema and its standby, both with the binaries of the embedded database. These have no pg_basebackup, so the standby
 * begins as a copy of the files before the primary first starts.
 */
export async function startPairedDatabase() {
  const dir = mkdtempSync(join(tmpdir(), 'herald-pair-'))
  const identity = unprivilegedIdentity(dir)
  if (identity !== undefined) chownSync(dir, identity.uid, identity.gid)
  const cleanup: Cleanup = []
  const binDir = locateBinaries(dir, identity)
  const [first, second] = ['primary', STANDBY].map((name) => placeAt(binDir, join(dir, name), cleanup)) as [Place, Place]
  await makeEmpty(first)
  execFileSync('cp', ['-a', join(first.dir, 'data'), second.dir])
  writeFileSync(join(second.dir, 'data', 'standby.signal'), '')
  await startServer(first)
  await ask(first, `create database ${DATABASE}`, 'postgres')
  const follow = () => startServer(second, { place: first, as: STANDBY })
  let standby = await follow()
  const url = urlOf(first)
  const owner = createOwnerPool({ connectionString: url }, () => {})
  await migrate(owner)
  await ensurePartitions(owner)
  await owner.end()
  const pool = createPool({ connectionString: url }, () => {})
  after(async () => {
    await pool.end()
    for (const end of cleanup.toReversed()) await end()
    rmSync(dir, { recursive: true })
  })
  return {
    url,
    pool,
    /** Whether commits wait for the standby. */
    setSynchronous: async (isSynchronous: boolean) => {
      await ask(first, `alter system set synchronous_standby_names = '${isSynchronous ? STANDBY : ''}'`)
      await ask(first, 'select pg_reload_conf()')
    },
    /** All processes of the standby at once, as a machine that loses its power. */
    killStandby: () => kill(standby),
    startStandby: async () => {
      standby = await follow()
    },
  }
}

type Place = ReturnType<typeof placeAt>
