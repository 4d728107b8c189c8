import type { Executor } from '../db/pool.ts'
import { opensAt } from './gate.ts'
import { placeOfNumber } from './places.ts'
import { type DeliveryWindow, isOfRecipient, textFor, textOf } from './window.ts'

/** The window of a message: its text, and when it opens first, by the clock of the database. */
export type MessageWindow = { text: string; opensAt: Date }

/** Several zones are separated by commas: the groups of a number may disagree. */
export type Member = { phone: string; timeZones: string | null }

/** `window`: the text of a campaign. The members of a chunk are in few places, so few open times are computed. */
export function windowFor(window: string, { phone, timeZones }: Member, at: number): MessageWindow {
  const text = isOfRecipient(window) ? textFor(window, timeZones ?? placeOfNumber(phone)) : window
  return { text, opensAt: new Date(opensAt(text, at)) }
}

/** The zone of a member is that in any group of the account. `sendAt`: the window counts from then on. */
export async function readWindow(
  db: Executor,
  accountId: number,
  phone: string,
  window: DeliveryWindow,
  sendAt: Date | undefined,
): Promise<MessageWindow> {
  const { rows } = await db.query<{ nowMs: number; timeZones: string | null }>({
    name: 'read-time-zones',
    text: READ_TIME_ZONES,
    values: [accountId, phone],
  })
  const [{ nowMs, timeZones }] = rows as [(typeof rows)[number]]
  return windowFor(textOf(window), { phone, timeZones }, Math.max(nowMs, sendAt?.getTime() ?? nowMs))
}

/** In SQL: the time zones of the members of a step, in one text. */
export const TIME_ZONES = `string_agg(distinct time_zone, ',' order by time_zone)`

export const NOW_MS = `(extract(epoch from now()) * 1000)::float8`

/** One index look-up for each group of the account. */
export const READ_TIME_ZONES = `
  select ${NOW_MS} as "nowMs", (
    select ${TIME_ZONES} from groups g, lateral (
      select time_zone from group_members p where p.account_id = g.account_id and p.group_number = g.number and p.phone = $2 offset 0
    ) as p
    where g.account_id = $1
  ) as "timeZones"`
