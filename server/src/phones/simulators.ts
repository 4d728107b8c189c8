import { findAgent, listAssignedCarriers } from '../agents/agents.ts'
import type { GoogleRbmSettings } from '../carriers/google-rbm/settings.ts'
import type { Executor } from '../db/pool.ts'
import { ApiError } from '../errors.ts'
import { createSimulator, type Simulator } from './simulator.ts'

type AccountPhones = {
  simulator: Simulator
  /** The agents of the account that use the simulator. */
  agentIds: string[]
}

type AccountCarrier = {
  carrier: string
  isSimulated: boolean
  agentIds: string[]
  /** The carrier's limits, if this process knows the carrier and it has them. */
  messagesPerSecond?: number
  messagesPerSecondPerAgent?: number
}

export type Simulators = {
  /** The simulator of an account's agents. If they use several, the first one by its name. */
  ofAccount: (db: Executor, accountId: number) => Promise<AccountPhones>
  /** The carriers of an account's agents, by name. */
  listCarriers: (db: Executor, accountId: number) => Promise<AccountCarrier[]>
  /** The simulator of an agent; undefined if its network is real. */
  ofAgent: (db: Executor, agentId: string) => Promise<Simulator | undefined>
  /** The simulator that a carrier is. */
  byName: (carrier: string) => Simulator
  close: () => Promise<void>
}

export function createSimulators(carriers: GoogleRbmSettings[]): Simulators {
  const simulators = new Map(carriers.filter(({ isSimulator }) => isSimulator).map((carrier) => [carrier.name, createSimulator(carrier)]))
  const names = [...simulators.keys()].sort((one, other) => (one < other ? -1 : 1))

  return {
    ofAccount: async (db, accountId) => {
      const agents = await listAssignedCarriers(db, accountId)
      const name = names.find((each) => agents.some(({ carrier }) => carrier === each))
      const simulator = simulators.get(name ?? '')
      if (simulator === undefined) throw notSimulated(`This account has no agent whose carrier is the simulator${inUse(agents)}.`)
      return { simulator, agentIds: agents.filter(({ carrier }) => carrier === name).map(({ agentId }) => agentId) }
    },
    listCarriers: async (db, accountId) => {
      const byCarrier = Map.groupBy(await listAssignedCarriers(db, accountId), ({ carrier }) => carrier)
      return [...byCarrier]
        .map(([carrier, agents]) => ({
          carrier,
          isSimulated: simulators.has(carrier),
          agentIds: agents.map(({ agentId }) => agentId),
          ...limitsOf(carriers.find(({ name }) => name === carrier)),
        }))
        .sort((one, other) => (one.carrier < other.carrier ? -1 : 1))
    },
    ofAgent: async (db, agentId) => simulators.get((await findAgent(db, agentId)).carrier),
    byName: (carrier) => {
      const simulator = simulators.get(carrier)
      if (simulator !== undefined) return simulator
      if (carriers.some(({ name }) => name === carrier)) throw notSimulated(`The carrier ${carrier} is a real network.`)
      throw new ApiError('RCS_NOT_FOUND', { details: [{ path: '/carrier', reason: 'names no RCS carrier of this process' }] })
    },
    close: async () => {
      await Promise.all([...simulators.values()].map((simulator) => simulator.close()))
    },
  }
}

function limitsOf({ messagesPerSecond, messagesPerSecondPerAgent }: Partial<GoogleRbmSettings> = {}) {
  return {
    ...(messagesPerSecond !== undefined && { messagesPerSecond }),
    ...(messagesPerSecondPerAgent !== undefined && { messagesPerSecondPerAgent }),
  }
}

function inUse(agents: { carrier: string }[]): string {
  const carriers = [...new Set(agents.map(({ carrier }) => carrier))]
  return carriers.length === 0 ? '' : `; its agents use ${carriers.join(', ')}`
}

function notSimulated(reason: string): ApiError {
  return new ApiError('RCS_NOT_SIMULATED', {
    details: [{ path: '', reason: `${reason} Phones exist only where the carrier is the simulator.` }],
  })
}
