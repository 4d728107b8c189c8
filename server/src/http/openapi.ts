import swagger, { type SwaggerTransformObject } from '@fastify/swagger'
import type { FastifyInstance, FastifySchema } from 'fastify'
import { NoQuery } from '../schemas.ts'
import { JSON_TYPE } from './error-responses.ts'

type Description = {
  version: string
  tags: { name: string; description: string }[]
  /** The events that are posted to callers, by name, and the parameters that several of them refer to. */
  webhooks?: Record<string, object>
  parameters?: Record<string, { name: string; in: string }>
}

/** The first segments of the paths of /v1 and of the admin API. Each has a document of its own. */
const API = '/v1'
export const ADMIN_API = '/admin/v1'

/** Leaves out the operations of the other document, and the schemas that only these refer to. */
const only = (prefix: string) => ({
  transformObject: ((generated) => withoutUnused((generated as { openapiObject: Document }).openapiObject)) as SwaggerTransformObject,
  transform: ({ schema, url }: { schema: FastifySchema; url: string }) => ({
    schema: url.startsWith(prefix) ? schema : { ...schema, hide: true },
    url,
  }),
})

type Document = { components?: { schemas?: Record<string, unknown> } }

const REFERENCE = /"#\/components\/schemas\/([^"]+)"/g

function withoutUnused<T extends Document>(document: T): T {
  const { components: { schemas = {}, ...components } = {}, ...others } = document
  const used = new Set<string>()
  const follow = (part: unknown): void => {
    for (const [, name = ''] of JSON.stringify(part).matchAll(REFERENCE)) {
      if (used.has(name)) continue
      used.add(name)
      follow(schemas[name])
    }
  }
  follow([others, components])
  const kept = Object.fromEntries(Object.entries(schemas).filter(([name]) => used.has(name)))
  return { ...document, components: { ...document.components, schemas: kept } }
}

/** Makes the OpenAPI document from the schemas that validate requests. Call this before adding the routes to describe. */
export async function describeApi(app: FastifyInstance, description: Description): Promise<void> {
  const { version, tags, webhooks = {}, parameters = {} } = description
  await app.register(swagger, {
    ...only(API),
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Herald API',
        version,
        description: DESCRIPTION,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: API }],
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

/** The same for /admin/v1. `app.adminSwagger()` returns it. */
export async function describeAdminApi(app: FastifyInstance, { version, tags }: Pick<Description, 'version' | 'tags'>): Promise<void> {
  await app.register(swagger, {
    ...only(ADMIN_API),
    decorator: 'adminSwagger',
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Herald admin API',
        version,
        description: ADMIN_DESCRIPTION,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: ADMIN_API }],
      tags,
      components: {
        securitySchemes: {
          token: { type: 'http', scheme: 'bearer', description: 'A token of a program: `Authorization: Bearer ho_…`.' },
          session: { type: 'apiKey', in: 'cookie', name: '__Host-herald', description: 'The session of a person who has signed in.' },
        },
      },
      security: [{ token: [] }, { session: [] }],
    },
    stripBasePath: true,
    refResolver: { buildLocalReference: (json, _baseUri, _fragment, index) => String(json.$id ?? `schema-${index}`) },
  })
}

/** Serves the document of an API, which is serialized once: it has up to a megabyte, and needs no credentials. */
export function serveDocument(app: FastifyInstance, document: () => object): void {
  let json: string | undefined
  app.get('/openapi.json', { schema: { hide: true, querystring: NoQuery }, config: { public: true } }, async (_request, reply) => {
    json ??= JSON.stringify(document())
    return reply.type(JSON_TYPE).send(json)
  })
}

const ADMIN_DESCRIPTION = `Manage accounts, people and everything else in Herald, as the command line and the console do.

People sign in with \`POST /session\`; programs send a token. What a person or token may do depends on the role: \`viewer\` reads in the accounts
named for it, with masked phone numbers; \`admin\` does everything in these accounts, except change the accounts themselves; \`operator\` does
everything. Every change of Herald’s data through this API has an entry in the audit log, except sign-ins, sign-outs and giving the password again.
The operations of the API for callers exist again under \`/accounts/{accountId}\`. Errors have the same form as there.`

const DESCRIPTION = `Send RCS messages from your own systems.

Every request carries \`Authorization: Bearer <integrationKey>:<secret>\`. Bodies are JSON of at most 256 KiB, 1,000 values and 32 levels; a property that is
\`null\` counts as absent, and an unknown property is an error. Every response carries \`X-Request-Id\`, and under \`/v1\` also
\`RateLimit-Policy\` and \`RateLimit\`. Timestamps are ISO 8601 with a zone; the API returns them in UTC with milliseconds.

Errors have one form, with a stable \`code\`; \`details\` says what is wrong and where. Retry 429 and 5xx with increasing delays, after
\`Retry-After\` seconds if that header is present. Other errors repeat until the request is fixed.`
