// The response of GET /admin/v1/health, as far as the page shows it.

export type Backlog = { due: number; oldestDueAt: string | null; oldestMs: number | null }

export type NodeRole = 'api' | 'delivery' | 'webhooks'

export type PoolUse = { name: 'general' | 'hot'; busy: number; max: number; waiting: number }

export type HealthNode = {
  nodeId: string
  host: string
  pid: number
  roles: NodeRole[]
  version: string
  startedAt: string
  seenAt: string
  loopDelayMs: number
  pools: PoolUse[]
}

export type Carrier = {
  name: string
  kind: 'rcs' | 'sms'
  nodes: number
  /** Null for a network without sessions. */
  sessions: number | null
  openCircuits: number
  /** Calls in the last five minutes by outcome. */
  outcomes: Record<string, number>
}

export type Database = {
  version: string
  schema: 'empty' | 'behind' | 'current' | 'newer'
  lastMigration: string
  migrations: number
  clockDifferenceMs: number
  standbys: { connected: number | null; missing: number; commitsWait: boolean }
}

export type Health = {
  checkedAt: string
  nodes: HealthNode[]
  carriers: Carrier[]
  queue: Backlog
  smsQueue: Backlog
  webhooks: Backlog & { failing: number }
  events: { behindMs: number }
  database: Database
}
