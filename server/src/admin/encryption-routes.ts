import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Pool } from '../db/pool.ts'
import { rotateKeys } from '../db/rotate-keys.ts'
import { KEY_USES, readKeyStatus } from '../db/secrets.ts'
import type { Keyring } from '../encryption/keyring.ts'
import { errorResponses } from '../http/error-responses.ts'
import { NoBody, NoQuery } from '../schemas.ts'

export const ENCRYPTION_TAG = { name: 'Encryption', description: 'The keys that encrypt the secrets in the database.' }

const tags = [ENCRYPTION_TAG.name]
const object = { additionalProperties: false }

const KeyStatusBody = Type.Object(
  {
    keyId: Type.String(),
    use: Type.Enum([...KEY_USES]),
    values: Type.Integer({ description: 'The number of secrets that it encrypts.' }),
  },
  object,
)
const Rotated = Type.Object(
  {
    keyId: Type.String({ description: 'The key that encrypts all secrets now.' }),
    reencrypted: Type.Integer(),
    unusedKeyIds: Type.Array(Type.String(), { description: 'No secret needs them any more; keep them for older backups.' }),
  },
  { ...object, description: 'What was re-encrypted.' },
)

export const encryptionRoutes: FastifyPluginAsyncTypebox<{ pool: Pool; keyring: Keyring }> = async (app, { pool, keyring }) => {
  app.get(
    '/encryption',
    {
      schema: {
        operationId: 'readEncryption',
        tags,
        summary: 'Show how many secrets are encrypted with which key',
        querystring: NoQuery,
        response: { 200: Type.Object({ keys: Type.Array(KeyStatusBody) }, { ...object, description: 'The keys.' }), ...errorResponses() },
      },
      config: { role: 'operator' },
    },
    async () => ({ keys: await readKeyStatus(pool, keyring.keyIds()) }),
  )

  app.post(
    '/encryption/rotate',
    {
      schema: {
        operationId: 'rotateEncryption',
        tags,
        summary: 'Encrypt all secrets with the first key of the key file',
        description: 'The entry in the audit log is made with the first secret that is re-encrypted.',
        querystring: NoQuery,
        body: NoBody,
        response: { 200: Rotated, ...errorResponses('RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE') },
      },
      config: { role: 'operator', audit: 'self' },
    },
    async (request) => await rotateKeys(pool, keyring, { record: request.recordChange }),
  )
}
