import type { ServiceAccount } from './access-token.ts'

export type GoogleRbmSettings = {
  name: string
  /** Of the region that the agents are in, such as https://europe-rcsbusinessmessaging.googleapis.com. */
  address: string
  serviceAccount: ServiceAccount
  /** What Google signs its events with. */
  webhookToken: string
  /** How many requests are made at once. */
  connections: number
  /** Of all agents together, and of each. */
  messagesPerSecond: number | undefined
  messagesPerSecondPerAgent: number | undefined
}
