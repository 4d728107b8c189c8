import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fromField, toField } from '../src/kit/local-time.ts'

test('a date field keeps its minutes while a person types the year, in every zone', (t) => {
  const { TZ } = process.env
  t.after(() => {
    if (TZ === undefined) delete process.env.TZ
    else process.env.TZ = TZ
  })
  for (const zone of ['Europe/Berlin', 'Asia/Tokyo', 'Europe/Warsaw', 'America/New_York', 'Asia/Kathmandu', 'UTC']) {
    process.env.TZ = zone
    for (const year of ['0002', '0020', '0202', '1890', '2026', '9999']) {
      for (const time of [`${year}-03-05T10:00`, `${year}-12-31T23:59`]) assert.equal(toField(fromField(time)), time, zone)
    }
  }
  assert.equal(toField(undefined), '')
  assert.equal(toField('soon'), '')
  assert.equal(fromField(''), undefined)
})
