import { join } from 'node:path'
import pg from 'pg'
import { until } from '../../test/support/until.ts'
import type { Cleanup } from '../cleanup.ts'
import { ask, DATABASE, kill, makeCopy, makeEmpty, type Place, type PostgresServer, placeAt, startServer, urlOf } from './server.ts'

// A primary, and a standby without which it commits nothing. What Patroni does in its synchronous mode is done here by hand: a primary that has a
// standby waits for it with every commit; one that is alone after a failover waits for nobody, until it has another.

const STANDBY = 'standby'

export type Pair = {
  primary: () => PostgresServer
  standby: () => PostgresServer
  /** The standby is the primary, and alone; the one before is whoever calls this to deal with. */
  promote: () => Promise<void>
  /** A new standby, copied from the primary. Returns when the primary commits nothing without it. */
  addStandby: () => Promise<void>
  /** The primary is killed, and starts again where it was. */
  crashPrimary: () => Promise<void>
}

/** `dir`: where the user that PostgreSQL runs as can get. */
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
    // Its copy has the settings of the primary, and it has no standby of its own yet.
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
 * PostgreSQL does not say from when on commits wait: its processes read their settings anew one after the other. So commits are made until one of
 * them waits. `ended`: it waits no more, since the standby has it.
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
  await until('a commit waits for the standby', async () => {
    if (!isCommitting) {
      isCommitting = true
      ended = commit()
    }
    const [backend] = await ask(place, `select wait_event from pg_stat_activity where pid = ${rows[0].pid}`)
    return backend.wait_event === 'SyncRep'
  })
  return { ended: ended.then(() => client.end()) }
}
