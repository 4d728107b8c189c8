import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { assertDescribed, at, campaignOf } from './shared.ts'
import { phone } from './support.ts'

// Every response of these tests is compared with the OpenAPI document. Here it is shown that the document describes each field and no other.

const { report, campaignId } = await campaignOf([
  { recipient: phone(1), acceptedAt: at(1), sentAt: at(1), actions: [{ kind: 'wrote', at: at(2), text: 'Hello' }] },
  { recipient: phone(2), acceptedAt: at(1), failedAt: at(2) },
])
const of = (name: string) => `/campaigns/${campaignId}/${name}`
const without = (body: object, name: string) => Object.fromEntries(Object.entries(body).filter(([each]) => each !== name))
/** The body without each of its fields, and with another one. */
const variants = (body: object) => [...Object.keys(body).map((name) => without(body, name)), { ...body, more: 1 }]

function assertUndescribed(path: string, bodies: object[]): void {
  for (const body of bodies) assert.throws(() => assertDescribed(path, body), JSON.stringify(body))
}

test('documents exactly the fields of a summary', async () => {
  for (const path of ['/messages/summary', of('summary')]) {
    const body = await report(path)
    const values = [{ sent: null }, { sent: '1' }, { sent: -1 }, { deliveryRate: 1.5 }, { from: 5 }].map((value) => ({ ...body, ...value }))
    const fallbacks = variants(body.smsFallback).map((smsFallback) => ({ ...body, smsFallback }))
    assertUndescribed(path, [...variants(body), ...values, ...fallbacks])
  }
  assertUndescribed('/messages/summary', [{ campaignId: randomUUID(), ...(await report('/messages/summary')) }])
})

for (const [path, fields, values] of [
  [of('aggregations'), undefined, [{ accepted: 1 }, { sent: null }, { period: 1 }]],
  [`${of('aggregations')}?interval=hour`, undefined, [{ accepted: 1 }]],
  [of('recipients/failed'), ['messageId', 'recipient', 'occurredAt', 'reason'], [{ recipient: null }]],
  [of('action-details'), undefined, []],
] as [path: string, fields: string[] | undefined, values: object[]][]) {
  test(`documents exactly the fields of ${path.split(campaignId)[1]}`, async () => {
    const body = await report(path)
    const [item] = body.items
    if (fields !== undefined) assert.deepEqual(Object.keys(item), fields)
    const items = [...variants(item), ...values.map((value) => ({ ...item, ...value }))]
    assertUndescribed(path, [...variants(body), ...items.map((each) => ({ ...body, items: [each] }))])
  })
}

test('documents the intervals of aggregations', async () => {
  const body = await report(of('aggregations'))
  assertUndescribed(of('aggregations'), [{ ...body, interval: 'week' }])
})
