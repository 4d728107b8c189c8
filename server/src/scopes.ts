/** What an integration key may be allowed to do. Every route of /v1 names the scope that it needs. */
export const SCOPES = ['send', 'read', 'export', 'manage'] as const
export type Scope = (typeof SCOPES)[number]
