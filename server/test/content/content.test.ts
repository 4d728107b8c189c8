import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CONTENT_SCHEMAS } from '../../src/content/content.ts'
import { TemplateToCheck } from '../../src/templates/check-routes.ts'
import { createSchemaCompiler } from '../../src/validation.ts'
import { CASES } from './cases.ts'

const check = createSchemaCompiler(CONTENT_SCHEMAS)(TemplateToCheck)

for (const [title, cases] of Object.entries(CASES)) {
  describe(title, () => {
    for (const [name, message, ...violations] of cases) {
      test(`${violations.length === 0 ? 'accepts' : 'rejects'} ${name}`, () => {
        // As in a request: undefined fields are absent.
        const body = JSON.parse(JSON.stringify({ message, ...(title === 'in Basic mode' && { basic: true }) }))
        const found = check(body).map(({ path, reason }) => `${path}: ${reason}`)
        const expected = violations.map((violation) => `/message${violation}`)
        assert.equal(found.length, expected.length)
        assert.deepEqual(new Set(found), new Set(expected))
      })
    }
  })
}
