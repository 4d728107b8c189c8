import { createTestDatabase } from '../support/database.ts'
import { callerAt, type MessageCaller } from '../support/messages.ts'
import { startTestService } from '../support/service.ts'
import { startSimulator } from '../support/simulator.ts'
import { until } from '../support/until.ts'
import { createSender, NO_LIMITS } from './support.ts'

/** A service with both simulated networks, and its callers, each of its own account. */
export async function startSimulated(env: Record<string, string> = {}) {
  const { url, hotPool: pool } = await createTestDatabase()
  const simulator = await startSimulator()
  const service = await startTestService(
    { HERALD_DATABASE_URL: url, ...NO_LIMITS, ...env },
    { findCarriers: async () => simulator.settings },
  )
  await simulator.ask('webhook', { url: `${service.url}/carriers/${simulator.rcs.name}/webhook` }, 'PUT')
  const newCaller = async () => callerAt(service.url, await createSender(pool))
  /** The messages on a phone, in order. */
  const received = async (phone: string): Promise<any[]> => (await simulator.ask(`phones/${phone}`)).messages
  return { url, pool, simulator, service, newCaller, received }
}

/** What the caller reads of a message, once this holds. */
export async function readOnce({ read }: MessageCaller, messageId: string, what: string, holds: (message: any) => boolean): Promise<any> {
  return await until(`${messageId} ${what}`, async () => {
    const { body } = await read(messageId)
    return holds(body) ? body : undefined
  })
}
