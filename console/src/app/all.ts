import { askAll } from './api.ts'
import { useResource } from './resource.ts'
import { useFrame } from './session.tsx'

/** All items of a list of the account, which a page searches, or a person chooses from. `value` is undefined until they are read. */
export function useAll<Item>(list: string, isNeeded = true) {
  const { accountId } = useFrame().account
  return useResource<Item[]>(isNeeded ? `/accounts/${accountId}/${list}` : undefined, askAll)
}
