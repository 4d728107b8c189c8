import { call } from '../../test/support/service.ts'
import type { Node, Role } from '../storm/nodes.ts'

// Who has done how much. A node counts from its start, so it is asked before each of its ends.

/** What a node of this role does, as its metrics have it. */
const WORK: Record<Role, RegExp> = {
  api: /^herald_http_request_duration_seconds_count\{.*route="\/v1\/messages".*\} (\d+)$/gm,
  delivery: /^herald_carrier_calls_total\{.*\} (\d+)$/gm,
  webhooks: /^herald_webhook_attempts_total\{.*\} (\d+)$/gm,
}

/** By the name of the node. */
export type Shares = Map<string, { role: Role; done: number }>

export async function noteShare(shares: Shares, { name, role, metricsUrl }: Node): Promise<void> {
  const { body } = await call(metricsUrl)
  const done = [...(body as string).matchAll(WORK[role])].reduce((sum, [, count]) => sum + Number(count), 0)
  shares.set(name, { role, done: (shares.get(name)?.done ?? 0) + done })
}
