import { randomUUID } from 'node:crypto'
import type { CarrierEvent } from '../../../src/carriers/carrier.ts'
import type { Pool } from '../../../src/db/pool.ts'
import { processReplies } from '../../../src/delivery/replies.ts'
import { erased } from '../../support/erased.ts'
import { createReceiver } from '../support.ts'
import { CARRIER } from '../worker.ts'
import { logger, otherNode, pool } from './nodes.ts'

// Replies of a recipient, as networks report them.

export const PHONE = '+48500100299'
export const ELSEWHERE = 'elsewhere'

export type Happened = { agoMs?: number; phone?: string; carrier?: string; eventId?: string }

/** A reply to the sender's agent. */
export function did({ agentId }: { agentId: string }, what: Record<string, unknown>, happened: Happened = {}): CarrierEvent {
  const { agoMs = 0, phone = PHONE, carrier = CARRIER, eventId = randomUUID() } = happened
  return { carrier, eventId, phone, agentId, occurredAt: new Date(Date.now() - agoMs), ...what } as unknown as CarrierEvent
}

export function wrote(sender: { agentId: string }, text: string, happened?: Happened): CarrierEvent {
  return did(sender, { kind: 'wrote', text }, happened)
}

export function tapped(sender: { agentId: string }, messageId: string, buttonId: string, happened?: Happened): CarrierEvent {
  return did(sender, { kind: 'tapped', messageId, buttonId, text: undefined }, happened)
}

export function wroteSms(senderNumber: string, text: string): CarrierEvent {
  const { agentId, ...event } = wrote({ agentId: '' }, text) as CarrierEvent & { agentId?: string }
  return { ...event, senderNumber } as CarrierEvent
}

/** A node receives events and processes them. */
export async function receiveReplies(events: CarrierEvent[], node: Pool = pool): Promise<void> {
  await createReceiver(node)(events)
  await processReplies(node, logger, erased)
}

/** Two nodes receive the same events at the same moment, and process them twice each. */
export async function receiveRepliesOnBothNodes(events: CarrierEvent[]): Promise<void> {
  await Promise.all([pool, otherNode].map((node) => createReceiver(node)(events)))
  await Promise.all([pool, otherNode, pool, otherNode].map((node) => processReplies(node, logger, erased)))
}
