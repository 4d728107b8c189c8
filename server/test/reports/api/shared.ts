import { createTestDatabase, ownerOf } from '../../support/database.ts'
import { type PastMessage, writeCampaign } from './past.ts'
import { startReportService } from './support.ts'

// One database and one service for all files, whose tests have their own accounts: a service for each file took two thirds of the time.

const database = await createTestDatabase({ unlogged: 'messages and campaigns are written by hand' })
export const { pool } = database
// These tests need no durability, and waiting for the disk at every receipt would take most of the time.
await ownerOf(pool).query(`alter database ${new URL(database.url).pathname.slice(1)} set synchronous_commit = off`)
export const { url, newCaller, assertDescribed } = await startReportService(database)

/** A time in the month of most tests. */
export const at = (day: number, time = '12:00:00.000') => `2026-10-${String(day).padStart(2, '0')}T${time}Z`

export const ascending = (texts: string[]) => texts.toSorted((a, b) => (a < b ? -1 : Number(a > b)))

export const keysOf = (items: Record<string, unknown>[], name: string) => items.map((item) => item[name])

/** A campaign of a new account. `list`: the path of its report. */
export async function campaignOf(messages: PastMessage[]) {
  const caller = await newCaller()
  const { campaignId, messages: written } = await writeCampaign(pool, caller, messages)
  const list = (report: string, query = '') => `/campaigns/${campaignId}/${report}?${query}`
  return { ...caller, campaignId, written, list }
}
