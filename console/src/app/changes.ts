import { ask } from './api.ts'

/** Sends the fields that differ, if there are any: a form leaves alone what somebody else has changed meanwhile. */
export async function saveChanges(path: string, before: object, after: object): Promise<void> {
  const changed = Object.entries(after).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name as keyof typeof before]),
  )
  if (changed.length > 0) await ask(path, { method: 'PATCH', body: Object.fromEntries(changed) })
}
