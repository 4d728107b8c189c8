import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { inBatches } from '../../src/http/server.ts'

const request = (isWritable = true) => ({ socket: { writable: isWritable } }) as IncomingMessage
const response = {} as ServerResponse

test('handles the requests of one turn together, in their order', async () => {
  const handled: IncomingMessage[] = []
  const handle = inBatches((one) => handled.push(one))
  const requests = [request(), request(), request()]
  for (const one of requests) handle(one, response)
  assert.equal(handled.length, 0)
  await nextTurn()
  assert.deepEqual(handled, requests)
})

test('holds at most 256 requests, however many are pipelined in one turn', async () => {
  let handled = 0
  const handle = inBatches(() => {
    handled += 1
  })
  for (let sent = 1; sent <= 2_000; sent += 1) {
    handle(request(), response)
    assert.ok(sent - handled < 256, `${sent - handled} wait`)
  }
  await nextTurn()
  assert.equal(handled, 2_000)
})

test('skips a request whose connection has closed meanwhile', async () => {
  let handled = 0
  const handle = inBatches(() => {
    handled += 1
  })
  handle(request(false), response)
  handle(request(), response)
  await nextTurn()
  assert.equal(handled, 1)
})
