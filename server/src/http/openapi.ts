import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'

type Description = {
  version: string
  tags: { name: string; description: string }[]
  /** The events that are posted to callers, by name, and the parameters that several of them refer to. */
  webhooks?: Record<string, object>
  parameters?: Record<string, { name: string; in: string }>
}

/** Makes the OpenAPI document from the schemas that validate requests. Call this before adding the routes to describe. */
export async function describeApi(app: FastifyInstance, description: Description): Promise<void> {
  const { version, tags, webhooks = {}, parameters = {} } = description
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Herald API',
        version,
        description: DESCRIPTION,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/v1' }],
      tags,
      webhooks,
      components: {
        parameters,
        securitySchemes: {
          integrationKey: {
            type: 'http',
            scheme: 'bearer',
            description:
              'Integration key and secret, joined by a colon: `Authorization: Bearer hk_…:hs_…`. A key can be restricted to scopes: `send`, `read`, `export`, `manage`.',
          },
        },
      },
      security: [{ integrationKey: [] }],
    },
    stripBasePath: true,
    refResolver: { buildLocalReference: (json, _baseUri, _fragment, index) => String(json.$id ?? `schema-${index}`) },
  })
}

const DESCRIPTION = `Send RCS messages from your own systems.

Every request carries \`Authorization: Bearer <integrationKey>:<secret>\`. Bodies are JSON of at most 256 KiB, 1,000 values and 32 levels; a property that is
\`null\` counts as absent, and an unknown property is an error. Every response carries \`X-Request-Id\`, and under \`/v1\` also
\`RateLimit-Policy\` and \`RateLimit\`. Timestamps are ISO 8601 with a zone; the API returns them in UTC with milliseconds.

Errors have one form, with a stable \`code\`; \`details\` says what is wrong and where. Retry 429 and 5xx with increasing delays, after
\`Retry-After\` seconds if that header is present. Other errors repeat until the request is fixed.`
