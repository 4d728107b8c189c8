import { join } from 'node:path'
import pg from 'pg'
import { until } from '../../test/support/until.ts'
import type { Cleanup } from '../support/cleanup.ts'
import {
  ask,
  DATABASE,
  kill,
  makeCopy,
  makeEmpty,
  type Place,
  type PostgresServer,
  placeAt,
  startServer,
  urlOf,
} from './postgres-server.ts'

// A primary that commits nothing without its standby. This does by hand what Patroni does in synchronous mode: a primary with a standby
// waits for it with every commit; a primary that is alone after a failover does not wait, until it has another standby.

const STANDBY = 'standby'
const TIMEOUT_MS = 60_000

export type Pair = {
  primary: () => PostgresServer
  standby: () => PostgresServer
  /** Makes the standby the primary, without a standby. The caller deals with the old primary. */
  promote: () => Promise<void>
  /** Copies a new standby from the primary. Returns when the primary commits nothing without it. */
  addStandby: () => Promise<void>
  /** Kills the primary and starts it again in the same place. */
  crashPrimary: () => Promise<void>
}

/** `dir`: PostgreSQL's user must be able to reach it. */
export async function startPair(binDir: string, dir: string, cleanup: Cleanup): Promise<Pair> {
  let made = 0
  function newPlace(): Place {
    made += 1
    return placeAt(binDir, join(dir, String(made)), cleanup)
  }
  async function follow({ place }: PostgresServer): Promise<PostgresServer> {
    const copy = newPlace()
    await makeCopy(copy, place)
    await setSynchronousStandby(place, STANDBY)
    const waiting = await untilACommitWaits(place)
    const follower = await startServer(copy, { place, as: STANDBY })
    // The copy has the settings of the primary, but no standby of its own yet.
    await setSynchronousStandby(copy, '')
    await waiting.ended
    return follower
  }

  const first = newPlace()
  await makeEmpty(first)
  let primary = await startServer(first)
  await ask(first, `create database ${DATABASE}`, 'postgres')
  let standby = await follow(primary)
  return {
    primary: () => primary,
    standby: () => standby,
    promote: async () => {
      await ask(standby.place, 'select pg_promote()')
      primary = standby
    },
    addStandby: async () => {
      standby = await follow(primary)
    },
    crashPrimary: async () => {
      await kill(primary)
      primary = await startServer(primary.place)
    },
  }
}

async function setSynchronousStandby(place: Place, names: string): Promise<void> {
  await ask(place, `alter system set synchronous_standby_names = '${names}'`)
  await ask(place, 'select pg_reload_conf()')
}

/**
 * PostgreSQL does not report when commits begin to wait, since its processes reload their settings one after the other. So this commits until
 * a commit waits. `ended`: the standby has that commit.
 */
async function untilACommitWaits(place: Place): Promise<{ ended: Promise<void> }> {
  const client = new pg.Client(urlOf(place))
  await client.connect()
  const { rows } = await client.query('select pg_backend_pid() as pid')
  let isCommitting = false
  let ended = Promise.resolve()
  async function commit(): Promise<void> {
    await client.query(`select pg_logical_emit_message(true, 'herald', '')`)
    isCommitting = false
  }
  async function isWaiting(): Promise<boolean> {
    if (!isCommitting) {
      isCommitting = true
      ended = commit()
    }
    const [backend] = await ask(place, `select wait_event from pg_stat_activity where pid = ${rows[0].pid}`)
    return backend.wait_event === 'SyncRep'
  }
  await until('a commit waits for the standby', isWaiting, TIMEOUT_MS)
  return { ended: ended.then(() => client.end()) }
}
