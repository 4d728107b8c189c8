import { createContext } from 'preact'
import { useMemo } from 'preact/hooks'
import { useResource } from '../app/resource.ts'

/** The hosts of webhook endpoints, by id. */
export const EndpointsContext = createContext<Map<number, string>>(new Map())

type Endpoint = { endpointId: number; url: string }

/** Reads the endpoints if there is a call to name. Deleted endpoints are missing. */
export function useHosts(accountId: number, isNeeded: boolean) {
  const { value, problem, reload } = useResource<{ items: Endpoint[] }>(
    isNeeded ? `/accounts/${accountId}/webhook-endpoints?limit=200` : undefined,
  )
  const hosts = useMemo(() => new Map(value?.items.map(({ endpointId, url }) => [endpointId, new URL(url).host])), [value])
  return { hosts, problem, reload }
}

export const useEndpoints = (accountId: number, isNeeded: boolean): Map<number, string> => useHosts(accountId, isNeeded).hosts
