import { Type } from 'typebox'
import { ErrorBody } from '../http/error-responses.ts'
import { OutgoingTime } from '../schemas.ts'

const strict = { additionalProperties: false }
const count = (description: string) => Type.Integer({ description })
const nullable = (schema: object) => Type.Unsafe<never>({ anyOf: [schema, { type: 'null' }] })
const Outcomes = Type.Record(Type.String(), Type.Integer(), {
  description: 'Calls in the last five minutes by outcome: `sent`, `failed`, `retry`, `unknown`, …',
})
const kind = Type.Enum(['rcs', 'sms'])
const sessions = nullable({ type: 'integer', description: 'Sessions that are bound, for SMPP; null for a network without sessions.' })

const Pool = Type.Object(
  {
    name: Type.Enum(['general', 'hot']),
    busy: count('Connections in use.'),
    max: Type.Integer(),
    waiting: count('Requests that wait for a connection.'),
  },
  { ...strict, description: 'A pool of database connections. `hot`: for what runs for each message.' },
)

const NodeCarrier = Type.Object(
  { name: Type.String(), kind, circuit: Type.Enum(['closed', 'open']), sessions, outcomes: Outcomes },
  { ...strict, description: '`open`: requests are paused after failures, for at least one agent, and none has succeeded since.' },
)

export const Node = Type.Object(
  {
    nodeId: Type.String({ format: 'uuid' }),
    host: Type.String(),
    pid: Type.Integer(),
    roles: Type.Array(Type.String()),
    version: Type.String(),
    startedAt: OutgoingTime,
    seenAt: Type.Unsafe<Date>({ ...OutgoingTime, description: 'When it last wrote its status, which it does every five seconds.' }),
    loopDelayMs: count('Delay of the event loop in the last five seconds, 99th percentile. Over 100: the process is overloaded.'),
    pools: Type.Array(Pool),
    carriers: Type.Array(NodeCarrier, { description: 'Empty if the process does not deliver.' }),
    streams: count('Open streams.'),
    eventsBehindMs: count('How far the log is behind: the time since the process last found that no event waited for its position.'),
    clockDifferenceMs: nullable({ type: 'integer', description: 'How far the database’s clock is ahead of the clock of its machine.' }),
    standbysSeen: count('The most standbys of the database that it saw connected at once within the last hour.'),
  },
  { $id: 'Node', ...strict },
)

const BACKLOG = {
  due: count('What is due and waits, counted up to 1,000.'),
  oldestDueAt: nullable(OutgoingTime),
  oldestMs: nullable({ type: 'integer', description: 'For how long the oldest has been due.' }),
}

const Standbys = Type.Object(
  {
    connected: nullable({
      type: 'integer',
      description: 'Null if the owner of the tables lacks pg_read_all_stats, which PostgreSQL requires here.',
    }),
    missing: count(
      'Standbys that should be connected and are not: commits wait for them, a replication slot is reserved for them, or they were connected within the last hour.',
    ),
    commitsWait: Type.Boolean({ description: 'Whether no commit ends until a synchronous standby is back.' }),
  },
  strict,
)

const Database = Type.Object(
  {
    version: Type.String({ examples: ['18.4'] }),
    schema: Type.Enum(['empty', 'behind', 'current', 'newer'], {
      description: 'The schema, compared with the migrations of this process.',
    }),
    lastMigration: Type.String(),
    migrations: Type.Integer(),
    sizeBytes: nullable({
      type: 'integer',
      description: 'Up to a minute old. Null if the service role lacks the privilege to connect, which PostgreSQL requires here.',
    }),
    clockDifferenceMs: count('How far the database’s clock is ahead of the clock of the process that responds.'),
    standbys: Standbys,
  },
  strict,
)

const Carrier = Type.Object(
  { name: Type.String(), kind, nodes: count('Processes that deliver to it.'), sessions, openCircuits: Type.Integer(), outcomes: Outcomes },
  { ...strict, description: 'A network, summed over all processes.' },
)

export const HealthBody = Type.Object(
  {
    checkedAt: OutgoingTime,
    nodes: Type.Array(Type.Ref('Node#'), {
      description:
        'The processes that wrote their status within the last 15 minutes, and have not shut down normally. A process whose `seenAt` is more than 7 seconds ago is lost.',
    }),
    carriers: Type.Array(Carrier),
    queue: Type.Object(BACKLOG, { ...strict, description: 'Messages that could be sent now. Those that wait on purpose are not counted.' }),
    smsQueue: Type.Object(BACKLOG, strict),
    webhooks: Type.Object({ ...BACKLOG, failing: count('Endpoints whose last attempt failed, and that will be tried again.') }, strict),
    events: Type.Object({ behindMs: count('The largest `eventsBehindMs` of all processes.') }, strict),
    database: Database,
  },
  { $id: 'Health', ...strict },
)

export const NoHealthBody = Type.Object(
  { ...ErrorBody.properties, node: Type.Optional(Type.Ref('Node#')) },
  { $id: 'NoHealth', ...strict, description: 'The error, and what this process knows of itself.' },
)
