/** What a process does: answer callers, talk to the networks, or tell callers what happened. By default one does it all. */
export const ROLES = ['api', 'delivery', 'webhooks'] as const
export type Role = (typeof ROLES)[number]
