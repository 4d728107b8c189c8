import type { CarrierEvent, OnEvents } from '../carriers/carrier.ts'
import { createBatcher } from '../db/batcher.ts'
import type { Executor, Pool } from '../db/pool.ts'

const MOST_AT_ONCE = 500

/** Keeps what carriers report. Returns once it is committed, so that a carrier is told only then that its event has arrived. */
export function createEventKeeper(pool: Pool): OnEvents {
  const keep = createBatcher(
    async (items: CarrierEvent[]) => {
      await keepEvents(pool, items)
      return items.map(() => undefined)
    },
    { maxItems: MOST_AT_ONCE },
  )
  return async (events) => {
    await Promise.all(events.map(keep))
  }
}

/** One that is kept already, or comes twice in the same batch, is left as it is: the first report counts. */
async function keepEvents(db: Executor, events: CarrierEvent[]): Promise<void> {
  await db.query({
    name: 'keep-carrier-events',
    text: `
      insert into carrier_events (carrier, event_id, kind, phone, occurred_at, event)
      select carrier, event_id, kind, phone, occurred_at, event
      from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::json[])
        as t (carrier, event_id, kind, phone, occurred_at, event)
      on conflict do nothing`,
    values: [
      events.map(({ carrier }) => carrier),
      events.map(({ eventId }) => eventId),
      events.map(({ kind }) => kind),
      events.map(({ phone }) => phone),
      events.map(({ occurredAt }) => occurredAt),
      events.map((event) => JSON.stringify(event)),
    ],
  })
}
