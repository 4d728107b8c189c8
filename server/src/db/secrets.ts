import { randomBytes } from 'node:crypto'
import type { Executor } from './pool.ts'

/** A key of the installation, made when it is first asked for. Of two that make it at once, both get the one that was first. */
export async function installationSecret(db: Executor, name: string): Promise<Buffer> {
  await db.query('insert into secrets (name, value) values ($1, $2) on conflict do nothing', [name, randomBytes(32)])
  const { rows } = await db.query<{ value: Buffer }>('select value from secrets where name = $1', [name])
  return (rows[0] as { value: Buffer }).value
}
