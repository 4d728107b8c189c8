import assert from 'node:assert/strict'
import { after } from 'node:test'
import { createHotPool } from '../../../src/db/pool.ts'
import { createLogger } from '../../../src/http/log.ts'
import { createTestDatabase, makePastMonths } from '../../support/database.ts'

export const { url, hotPool: pool } = await createTestDatabase({ unmetered: 'messages are sent by hand' })
export const otherNode = createHotPool({ connectionString: url }, () => {})
after(() => otherNode.end())
// Messages of up to 31 days ago, whichever day it is.
await makePastMonths(pool)

let log = ''
export const logger = createLogger('info', {
  write: (line) => {
    log += line
  },
})

/** Runs `work`, and returns the lines that it logs. */
export async function logged(work: () => Promise<unknown>): Promise<any[]> {
  log = ''
  await work()
  assert.doesNotMatch(log, /48500\d{6}|CANARY/, 'no number and no text is logged')
  return log
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}
