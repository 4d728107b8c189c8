import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, type TestContext, test } from 'node:test'
import type { Page } from 'playwright-core'
import { browserTest, openPage } from '../support/browser.ts'
import { startHerald } from '../support/herald.ts'
import { repeatIfSlow } from '../support/timed.ts'
import { type Person, personAt, WAYS, type Way } from './person.ts'

export const herald = await startHerald()

/** An account that has sent nothing, and an admin of it who is signed in. */
export async function newAccount() {
  const account = await herald.newAccount()
  return { base: herald.url, ...account, cookie: await account.signIn('admin') }
}

export type Journey = { t: TestContext; page: Page; person: Person; way: Way }
/** `end`: called when the page is closed. */
type Start = { base: string; cookie?: string; end?: () => Promise<unknown> }

/** Two tests of a journey: with the mouse, and by the keyboard alone. Anything that goes wrong on the page fails them. */
export function testJourney<S extends Start>(name: string, start: () => Promise<S>, run: (journey: Journey & S) => Promise<void>): void {
  for (const way of WAYS) {
    test(`${name}, with the ${way}`, browserTest, async (t) => {
      await repeatIfSlow(async () => {
        const started = await start()
        const { page, problems, close } = await openPage(started)
        try {
          await run({ ...started, t, page, person: personAt(page, way), way })
          assert.deepEqual(problems, [])
        } finally {
          await close()
          await started.end?.()
        }
      })
    })
  }
}

/**
 * A server that receives events, and responds 503 while it is down. `retryAfterSeconds`: the pause that it then asks for. `accepted`, `refused`:
 * the ids of the events, in order.
 */
export async function startReceiver() {
  const receiver = { url: '', isDown: false, retryAfterSeconds: 0, accepted: [] as string[], refused: [] as string[] }
  const server = createServer(async (request, response) => {
    const { eventId } = JSON.parse((await request.toArray()).join(''))
    const { isDown, retryAfterSeconds, accepted, refused } = receiver
    ;(isDown ? refused : accepted).push(eventId)
    if (isDown && retryAfterSeconds > 0) response.setHeader('retry-after', retryAfterSeconds)
    response.writeHead(isDown ? 503 : 200).end(isDown ? 'out of disk' : '')
  }).listen(0, '127.0.0.1')
  after(() => server.close())
  await once(server, 'listening')
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  return receiver
}
