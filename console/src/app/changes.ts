/** The fields that differ, for a PATCH: a form leaves alone what somebody else has changed meanwhile. */
export const changesOf = (before: object, after: object): object =>
  Object.fromEntries(
    Object.entries(after).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name as keyof typeof before])),
  )
