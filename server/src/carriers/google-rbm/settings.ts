import type { ServiceAccount } from './access-token.ts'

export type GoogleRbmSettings = {
  name: string
  /** The API's address in the agents' region, such as https://europe-rcsbusinessmessaging.googleapis.com. */
  address: string
  serviceAccount: ServiceAccount
  /** The token that Google signs its events with. */
  webhookToken: string
  /** Whether it is the simulator and no real network: then it also has phones (src/phones). */
  isSimulator?: boolean
  /** The maximum number of concurrent requests. */
  connections: number
  /** The rate limits of all agents together, and of each agent. */
  messagesPerSecond: number | undefined
  messagesPerSecondPerAgent: number | undefined
}
