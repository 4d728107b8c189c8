import { writeFileSync } from 'node:fs'
import { buildApp } from '../src/app.ts'
import { CARRIER_ERRORS } from '../src/carriers/errors.ts'
import { loadConfig } from '../src/config.ts'
import { createPool } from '../src/db/pool.ts'
import { FAILURES, FALLBACK_TRIGGERS, NOT_NEEDED_REASONS, SKIP_REASONS, SMS_FAILURES } from '../src/delivery/failures.ts'
import type { Keyring } from '../src/encryption/keyring.ts'
import type { ErasedPeople } from '../src/erasure/erased.ts'
import { ERRORS } from '../src/errors.ts'
import { createLogger } from '../src/http/log.ts'
import { renderPage } from './api-reference/page.ts'
import { sqlPages } from './sql-pages.ts'

const CALLERS = {
  folder: 'docs/',
  file: 'openapi.json',
  other: { address: 'docs/admin', title: 'The API for administration' },
  token: 'hk_…:hs_…',
}
const ADMINS = { folder: '', file: 'openapi-admin.json', other: { address: '../docs', title: 'The API for callers' }, token: 'ho_…' }

/** The text of each generated file in the repository, by its path. A test fails if a file differs. */
export async function generateFiles(): Promise<Record<string, string>> {
  const pool = createPool({ connectionString: 'postgres://never-connected' }, () => {})
  // Nothing is encrypted.
  const options = { cursorKey: Buffer.alloc(32), keyring: {} as Keyring, erased: {} as ErasedPeople, announce: () => {} }
  const { fastify } = await buildApp(loadConfig({}), { pool, hotPool: pool }, createLogger('silent'), options)
  const [document, adminDocument] = [fastify.swagger(), fastify.adminSwagger()].map((each) => `${JSON.stringify(each, null, 2)}\n`) as [
    string,
    string,
  ]
  await fastify.close()
  await pool.end()
  return {
    'openapi.json': document,
    'openapi-admin.json': adminDocument,
    'server/static/docs/index.html': renderPage(document, CALLERS),
    'server/static/docs/admin.html': renderPage(adminDocument, ADMINS),
    'docs/errors.md': errorsPage(),
    ...sqlPages(),
  }
}

function errorsPage(): string {
  const rows = Object.entries(ERRORS).map(([code, { status, when }]) => `| ${status} | \`${code}\` | ${when} |`)
  const failures = Object.entries(FAILURES).map(([reason, description]) => `| \`${reason}\` | ${description} |`)
  const fallbacks = Object.entries(FALLBACK_REASONS).flatMap(([statuses, reasons]) =>
    Object.entries(reasons).map(([reason, description]) => `| ${statuses} | \`${reason}\` | ${description} |`),
  )
  return `# Errors

\`\`\`sh
curl -X PATCH -H @data/demo.header -H 'Content-Type: application/json' http://127.0.0.1:8080/v1/agents/demo-single -d '{
  "displayName": "A name of more than 31 characters"
}'
\`\`\`

\`\`\`json
{
  "statusCode": 400,
  "code": "RCS_INVALID_REQUEST",
  "message": "RCS_INVALID_REQUEST",
  "requestId": "req_0d9b4fbe5f0f4f0c8a3e2f0a4b6c8d1e",
  "details": [{ "path": "/displayName", "reason": "must have at most 31 characters" }]
}
\`\`\`

Every failed request gets a body like this. \`message\` repeats the code. \`requestId\` is also in the header \`X-Request-Id\`. \`details\`, if
present, says what is wrong and where: \`path\` is a JSON pointer into the body, or \`/name\` for a query parameter, or empty for the request as
a whole.

| status | code | when |
|---|---|---|
${rows.join('\n')}

Herald checks in this order: credentials (401), limits (429), the address, suspension, scopes and modules of the caller (403), path and method (404,
405), the request itself (400, 413, 415), the resources that it names (404), conflicts (409), quotas (429). Retry 429 and 5xx with increasing
delays; other errors repeat until you fix the request.

## Failures

The \`failure\` of a \`FAILED\` message has one of these reasons. Its \`description\` adds the network's own text.

| reason | description |
|---|---|
${failures.join('\n')}

## SMS fallbacks

The \`smsFallback\` of a message has a \`reason\` too:

| status | reason | description |
|---|---|---|
${fallbacks.join('\n')}

## Errors of the networks

The last column is the reason with which the message fails, or RETRY: Herald retries with growing delays until the message expires.
\`npm run generate\` writes this page from the code.

| network | code | name | meaning |
|---|---|---|---|
${Object.entries(CARRIER_ERRORS).flatMap(networkErrors).join('\n')}
`
}

type NetworkErrors = (typeof CARRIER_ERRORS)[keyof typeof CARRIER_ERRORS]

function networkErrors([network, { known, other }]: [string, NetworkErrors]): string[] {
  const codeOf = (code: number) => (network === 'smpp' ? `0x${code.toString(16).padStart(8, '0')}` : code)
  const rows = [...known].map(([code, { name, meaning }]) => `| ${network} | ${codeOf(code)} | ${name} | ${meaning} |`)
  return [...rows, `| ${network} | any other | | ${other} |`]
}

const FALLBACK_REASONS = {
  '`SCHEDULED`, `SENT`, `DELIVERED`': FALLBACK_TRIGGERS,
  '`NOT_NEEDED`': NOT_NEEDED_REASONS,
  '`SKIPPED`': SKIP_REASONS,
  '`FAILED`': SMS_FAILURES,
}

if (import.meta.main) {
  for (const [path, text] of Object.entries(await generateFiles())) writeFileSync(new URL(`../../${path}`, import.meta.url), text)
}
