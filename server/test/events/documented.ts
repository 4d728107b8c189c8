import assert from 'node:assert/strict'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { Executor } from '../../src/db/pool.ts'
import { EVENT_SCHEMAS } from '../../src/events/schemas.ts'
import { LOGGED_EVENTS } from '../support/log.ts'

const EVENT_ID = '0198c0de-0000-7000-8000-000000000003'
const ajv = new Ajv2020({ strict: false, validateFormats: false, schemas: EVENT_SCHEMAS })

/** Every event is as the OpenAPI document describes its kind: no field is missing, and none is unknown. */
export async function assertAsDocumented(db: Executor): Promise<void> {
  const { rows } = await db.query<{ kind: string; occurredAt: Date; data: object }>(
    `select kind, occurred_at as "occurredAt", data from ${LOGGED_EVENTS} as e order by page, place`,
  )
  for (const { kind, occurredAt, data } of rows) {
    const isValid = ajv.validate(kind, { eventId: EVENT_ID, type: kind, occurredAt: occurredAt.toISOString(), data })
    assert.ok(isValid, `${kind} ${JSON.stringify(data)}: ${ajv.errorsText()}`)
  }
}
