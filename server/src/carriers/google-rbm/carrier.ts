import type { Logger } from 'pino'
import type { RcsCarrier } from '../carrier.ts'
import { agentMessage } from './agent-message.ts'
import { createCalls, LONGEST_CALL_MS } from './calls.ts'
import { writePostback } from './postback.ts'
import { createReach } from './reach.ts'
import { revokeResult, sendResult } from './responses.ts'
import type { GoogleRbmSettings } from './settings.ts'

// The limit of the network, as JSON. Only control characters, which take six bytes each in JSON, make a message this large.
const MESSAGE_MAX_BYTES = 250_000

/** Google's RCS Business Messaging API, version 1. */
export function createGoogleRbm(settings: GoogleRbmSettings, options: { postbackKey: Buffer; logger: Logger }): RcsCarrier {
  const { postbackKey } = options
  const logger = options.logger.child({ carrier: settings.name })
  const calls = createCalls(settings, logger)
  return {
    name: settings.name,
    longestCallMs: LONGEST_CALL_MS,
    concurrency: settings.connections,
    messagesPerSecond: settings.messagesPerSecond,
    messagesPerSecondPerAgent: settings.messagesPerSecondPerAgent,
    pausedForMs: calls.pausedForMs,
    health: () => ({ circuit: calls.isAnyPaused() ? 'open' : 'closed', sessions: null }),
    connect: async () => {
      try {
        await calls.authorise()
        logger.info('authenticated with the RCS network')
      } catch (error) {
        logger.error({ reason: (error as Error).message }, 'failed to get an access token; will retry with each message')
      }
    },
    send: async (message) => {
      const { messageId, agentId, recipient } = message
      const body = JSON.stringify(agentMessage(message, (buttonId) => writePostback(postbackKey, { messageId, buttonId })))
      if (Buffer.byteLength(body) > MESSAGE_MAX_BYTES) {
        return { is: 'failed', reason: 'REJECTED', detail: `the message exceeds ${MESSAGE_MAX_BYTES} bytes as JSON` }
      }
      const path = `/v1/phones/${recipient}/agentMessages?messageId=${messageId}&agentId=${encodeURIComponent(agentId)}`
      return await calls.attempt({ method: 'POST', path, body }, agentId, (response) => sendResult(response, messageId))
    },
    revoke: async ({ messageId, agentId, recipient }) => {
      const path = `/v1/phones/${recipient}/agentMessages/${messageId}?agentId=${encodeURIComponent(agentId)}`
      return await calls.attempt({ method: 'DELETE', path }, agentId, revokeResult)
    },
    reach: createReach(calls.ask),
    close: calls.close,
  }
}
