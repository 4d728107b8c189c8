import type { Executor } from '../../src/db/pool.ts'

/** Sets the expiry of messages to the SQL expression `at`, as if they had been accepted with it. Such messages have a row in `expiries`. */
export async function moveExpiry(db: Executor, messageIds: string[], at = `now() - interval '1 second'`): Promise<void> {
  await db.query(`update messages set expires_at = ${at} where id = any ($1)`, [messageIds])
  await db.query(`update queue set expires_at = ${at} where message_id = any ($1)`, [messageIds])
  await db.query(
    `insert into expiries (message_id, expires_at) select id, ${at} from unnest($1::uuid[]) as id
     on conflict (message_id) do update set expires_at = excluded.expires_at`,
    [messageIds],
  )
}
