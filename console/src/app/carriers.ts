import { useResource } from './resource.ts'
import { useFrame } from './session.tsx'

/** A carrier of the account's agents. */
type AccountCarrier = {
  carrier: string
  isSimulated: boolean
  agentIds: string[]
  /** Limits, where the carrier has them. */
  messagesPerSecond?: number
  messagesPerSecondPerAgent?: number
}

/** The carriers of the account. `simulator`: the one whose phones people can use, if there is one. */
export function useCarriers() {
  const { account } = useFrame()
  const { value, problem, reload } = useResource<{ items: AccountCarrier[] }>(`/accounts/${account.accountId}/carriers`)
  const carriers = value?.items
  return { carriers, simulator: carriers?.find(({ isSimulated }) => isSimulated), problem, reload }
}
