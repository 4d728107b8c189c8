/** What a process does: answer callers, or talk to the networks. By default one does it all. */
export const ROLES = ['api', 'delivery'] as const
export type Role = (typeof ROLES)[number]
