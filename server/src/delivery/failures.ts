import { REFUSALS } from '../carriers/carrier.ts'

/** Why a message was given up: what networks say, and what we do ourselves. */
export const FAILURES = {
  ...REFUSALS,
  AGENT_INACTIVE: 'The agent was deactivated before the message was sent.',
} as const satisfies Record<string, string>
export type Failure = keyof typeof FAILURES
