import { readFileSync, statSync } from 'node:fs'

/** The user that PostgreSQL runs as if Herald runs as root. PostgreSQL refuses to run as root. */
export type Identity = { uid: number; gid: number }

/**
 * Returns the user for PostgreSQL; undefined if Herald is not root, since PostgreSQL then runs as the same user. For existing data it is the owner
 * of the data, since root may start a service that another user has set up. For new data it is the first of these users that the machine has.
 */
export function unprivilegedIdentity(clusterDir: string): Identity | undefined {
  if (process.getuid?.() !== 0) return undefined
  const owner = statSync(clusterDir, { throwIfNoEntry: false })
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid }
  for (const name of ['herald', 'postgres', 'nobody']) {
    const found = new RegExp(`^${name}:[^:]*:(\\d+):(\\d+):`, 'm').exec(readFileSync('/etc/passwd', 'utf8'))
    if (found !== null) return { uid: Number(found[1]), gid: Number(found[2]) }
  }
  return { uid: 65534, gid: 65534 }
}
