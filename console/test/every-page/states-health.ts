import type { Page } from 'playwright-core'
import type { Health, HealthNode } from '../../src/pages/health/health-types.ts'
import { at, heading, type State } from './state.ts'

/** Opens the page with this change of the real health. */
async function openWith(page: Page, change: (health: Health) => void): Promise<void> {
  await page.route('**/admin/v1/health', async (route) => {
    const response = await route.fetch()
    const health = await response.json()
    // Other work of the machine, and what other pages need, may be troubles.
    health.webhooks = { due: 0, oldestDueAt: null, oldestMs: null, failing: 0 }
    for (const node of health.nodes) node.loopDelayMs = 5
    change(health)
    await route.fulfill({ json: health })
  })
  await page.goto(at('health'))
}

const LONG_HOST = 'herald-delivery-7c9d8f6b54-x2x9z.internal.example.com'

export const HEALTH: State[] = [
  {
    name: 'Health',
    open: async (page) => {
      await openWith(page, () => {})
      await heading(page, 'Healthy').waitFor()
    },
  },
  {
    name: 'Health, a lost process',
    open: async (page) => {
      await openWith(page, (health) => {
        const [node] = health.nodes as [HealthNode]
        health.nodes.push({
          ...node,
          nodeId: 'lost',
          host: LONG_HOST,
          pid: 4711,
          roles: ['delivery'],
          seenAt: new Date(Date.now() - 60_000).toISOString(),
        })
      })
      await heading(page, `The process ${LONG_HOST} (4711) is lost.`).waitFor()
    },
  },
  {
    name: 'Health, much is wrong',
    open: async (page) => {
      await openWith(page, (health) => {
        for (const carrier of health.carriers)
          Object.assign(carrier, { openCircuits: 1, outcomes: { sent: 20, retry: 30, failed: 4, unknown: 2 } })
        health.queue = { due: 1_000, oldestDueAt: new Date().toISOString(), oldestMs: 340_000 }
        health.smsQueue = { due: 12, oldestDueAt: new Date().toISOString(), oldestMs: 20_000 }
        health.events.behindMs = 90_000
        Object.assign(health.database, { schema: 'behind', standbys: { connected: 0, missing: 1, commitsWait: true } })
        for (const pool of health.nodes.flatMap(({ pools }) => pools)) Object.assign(pool, { busy: pool.max, waiting: 5 })
        for (const node of health.nodes) node.loopDelayMs = 900
      })
      await heading(page, '5 things are wrong').waitFor()
    },
  },
  {
    name: 'Health without the database',
    refused: 503,
    open: async (page) => {
      const json = { statusCode: 503, code: 'RCS_UNAVAILABLE', message: 'RCS_UNAVAILABLE', requestId: 'req_health' }
      await page.route('**/admin/v1/health', (route) => route.fulfill({ status: 503, json }))
      await page.goto(at('health'))
      await heading(page, 'The database is out of reach.').waitFor()
    },
  },
]
