import { randomUUID } from 'node:crypto'
import type { RcsCarrier, Reach } from '../carrier.ts'
import { fieldsOf, isObject } from '../json.ts'
import type { Request, Response } from './http.ts'
import { isRefusal } from './responses.ts'

// Looks up whether numbers can be reached by RCS. The network's own data is up to four hours old: phones check in every one to four hours.

/** Returns undefined if there was no response. */
type Ask = (agentId: string, request: Request) => Promise<Response | undefined>
/** The network's results by number. A number is missing if the network said nothing about it. */
type ReachByRecipient = Map<string, Reach>

// For a single number, Google asks the number's network. For a batch of up to 10,000, it reads its own cache, in one request.
const MAX_SINGLE_LOOKUPS = 3
const BATCH_SIZE = 10_000
// These take some 15 MB, since equal lists of features are shared. The oldest entries are evicted in batches: to find its oldest entry, a Map
// walks over all entries that were deleted since it last grew.
const MAX_CACHED = 100_000
const EVICTION_BATCH_SIZE = 10_000
const MAX_FEATURE_LISTS = 1_000

export function createReach(ask: Ask): RcsCarrier['reach'] {
  const cache = new Map<string, { reach: Reach; at: number }>()
  /** Look-ups in progress, which concurrent calls for the same number share. */
  const inProgress = new Map<string, Promise<ReachByRecipient>>()

  function addToCache(agentId: string, results: ReachByRecipient): ReachByRecipient {
    for (const [recipient, reach] of results) {
      const key = keyOf(agentId, recipient)
      cache.delete(key)
      cache.set(key, { reach, at: performance.now() })
      if (cache.size > MAX_CACHED) for (const oldest of cache.keys().take(EVICTION_BATCH_SIZE)) cache.delete(oldest)
    }
    return results
  }

  function lookUp(agentId: string, recipients: string[]): void {
    const batches = recipients.length <= MAX_SINGLE_LOOKUPS ? recipients.map((recipient) => [recipient]) : chunks(recipients, BATCH_SIZE)
    for (const batch of batches) {
      const lookup = (batch.length === 1 ? lookUpOne(ask, agentId, batch[0] as string) : lookUpBatch(ask, agentId, batch))
        .then((results) => addToCache(agentId, results))
        .finally(() => {
          for (const recipient of batch) inProgress.delete(keyOf(agentId, recipient))
        })
      for (const recipient of batch) inProgress.set(keyOf(agentId, recipient), lookup)
    }
  }

  return async (agentId, recipients, maxAgeMs, timeoutMs) => {
    const results: ReachByRecipient = new Map()
    for (const recipient of recipients) {
      const found = cache.get(keyOf(agentId, recipient))
      if (found !== undefined && performance.now() - found.at <= maxAgeMs) results.set(recipient, found.reach)
    }
    const missing = [...new Set(recipients)].filter((recipient) => !results.has(recipient))
    lookUp(
      agentId,
      missing.filter((recipient) => !inProgress.has(keyOf(agentId, recipient))),
    )
    const lookUps = new Set(missing.map((recipient) => inProgress.get(keyOf(agentId, recipient)) as Promise<ReachByRecipient>))
    for (const found of await inTime([...lookUps], timeoutMs)) for (const [recipient, reach] of found) results.set(recipient, reach)
    const unknown = { reachable: undefined, features: undefined, checkedAt: new Date() }
    return recipients.map((recipient) => results.get(recipient) ?? { recipient, ...unknown })
  }
}

/** Returns the results of the look-ups that end in time. */
async function inTime(lookUps: Promise<ReachByRecipient>[], timeoutMs: number | undefined): Promise<ReachByRecipient[]> {
  if (timeoutMs === undefined || lookUps.length === 0) return await Promise.all(lookUps)
  const { promise: tooLate, resolve } = Promise.withResolvers<ReachByRecipient>()
  const timer = setTimeout(resolve, timeoutMs, new Map())
  const results = await Promise.all(lookUps.map((lookUp) => Promise.race([lookUp, tooLate])))
  clearTimeout(timer)
  return results
}

async function lookUpOne(ask: Ask, agentId: string, recipient: string): Promise<ReachByRecipient> {
  const query = new URLSearchParams({ requestId: randomUUID(), agentId })
  const response = await ask(agentId, { method: 'GET', path: `/v1/phones/${recipient}/capabilities?${query}` })
  const isReachable = response?.status === 200 && hasOnly(response.body, ['features', 'carrier'])
  const isUnreachable = (response?.status === 404 || response?.status === 403) && isRefusal(response)
  if (!isReachable && !isUnreachable) return new Map()
  const features = isReachable ? shared(featuresOf(response.body)) : NO_FEATURES
  const isDenied = response?.status === 403
  return new Map([[recipient, { recipient, reachable: isReachable, features, checkedAt: new Date(), ...(isDenied && { isDenied }) }]])
}

const NO_FEATURES: string[] = []
const featureLists = new Map<string, string[]>()

function featuresOf(body: unknown): string[] {
  const { features = [] } = fieldsOf(body)
  return Array.isArray(features) ? features.filter((name) => typeof name === 'string') : []
}

/** Returns the same list for equal features: phones differ little, and a list takes more than the rest of a cached result. */
function shared(features: string[]): string[] {
  const key = features.join()
  if (featureLists.size >= MAX_FEATURE_LISTS) featureLists.clear()
  return featureLists.getOrInsert(key, features)
}

async function lookUpBatch(ask: Ask, agentId: string, recipients: string[]): Promise<ReachByRecipient> {
  const response = await ask(agentId, { method: 'POST', path: '/v1/users:batchGet', body: JSON.stringify({ users: recipients, agentId }) })
  const { reachableUsers = [] } = fieldsOf(response?.body)
  if (response?.status !== 200 || !hasOnly(response.body, BATCH_FIELDS) || !Array.isArray(reachableUsers)) return new Map()
  const reachable = new Set<unknown>(reachableUsers)
  const checkedAt = new Date()
  return new Map(
    recipients.map((recipient) => {
      const isReachable = reachable.has(recipient)
      return [recipient, { recipient, reachable: isReachable, features: isReachable ? undefined : NO_FEATURES, checkedAt }]
    }),
  )
}

const BATCH_FIELDS = ['reachableUsers', 'reachableUsersMap', 'totalRandomSampleUserCount', 'reachableRandomSampleUserCount']

/**
 * Protocol buffers omit empty lists and zeros from JSON, so an empty object may mean that no number is reachable. A body with any other field
 * does not come from the API: without this check, it would make all numbers of a batch unreachable.
 */
function hasOnly(body: unknown, names: string[]): boolean {
  return isObject(body) && Object.keys(body).every((name) => names.includes(name))
}

/** The cache is per agent: an agent may be launched on one network and not on another. */
function keyOf(agentId: string, recipient: string): string {
  return `${agentId} ${recipient}`
}

function chunks<T>(items: T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) => items.slice(index * size, (index + 1) * size))
}
