/** What a process does: serve the API, deliver messages through the networks, or post events to callers. By default it has all roles. */
export const ROLES = ['api', 'delivery', 'webhooks'] as const
export type Role = (typeof ROLES)[number]
