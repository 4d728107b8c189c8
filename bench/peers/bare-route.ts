import { fastify } from 'fastify'
import { CONTENT_SCHEMAS } from '../../server/src/content/content.ts'
import { ErrorBody } from '../../server/src/http/error-responses.ts'
import { buildValidator } from '../../server/src/http/validation.ts'
import { AcceptedMessage, IdempotencyHeaders, MessageRequest } from '../../server/src/messages/schemas.ts'
import { NoQuery } from '../../server/src/schemas.ts'
import { listen } from './listen.ts'

// The limit of accepting: a route of Fastify with the schemas of `POST /v1/messages` that responds at once and stores nothing. It has no
// credentials, limits, log or metrics.

const app = fastify({ schemaController: { compilersFactory: { buildValidator: buildValidator as never } } })
for (const schema of [...CONTENT_SCHEMAS, ErrorBody]) app.addSchema(schema)
const schema = { querystring: NoQuery, headers: IdempotencyHeaders, body: MessageRequest, response: { 202: AcceptedMessage } }
app.post('/v1/messages', { schema }, async (_request, reply) => reply.code(202).send({ messageId: '0198c0de-0000-7000-8000-000000000001' }))
await app.ready()
listen(app.server)
