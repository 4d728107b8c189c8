import type { Store } from '../state/store.ts'

export type Offline = {
  has: (phone: string) => boolean
  set: (phone: string, isOffline: boolean) => void
}

/** The phones that are switched off. The list is a setting, so that it survives a restart. */
export function createOffline(store: Store): Offline {
  const phones = new Set<string>(JSON.parse(store.state.settings.get('offline') ?? '[]'))
  return {
    has: (phone) => phones.has(phone),
    set: (phone, isOffline) => {
      if (phones.has(phone) === isOffline) return
      if (isOffline) phones.add(phone)
      else phones.delete(phone)
      store.append({ is: 'setting', name: 'offline', value: JSON.stringify([...phones]) })
    },
  }
}
