import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CONTENT_SCHEMAS } from '../../src/content/content.ts'
import { TemplateToCheck } from '../../src/templates/routes.ts'
import { createSchemaCompiler } from '../../src/validation.ts'
import { CASES } from './cases.ts'

const check = createSchemaCompiler(CONTENT_SCHEMAS)(TemplateToCheck)

for (const [title, cases] of Object.entries(CASES)) {
  describe(title, () => {
    for (const [name, message, violations, basic] of cases) {
      test(`${violations.length === 0 ? 'takes' : 'refuses'} ${name}`, () => {
        // As it comes in: what is undefined is absent.
        const body = JSON.parse(JSON.stringify({ message, ...(basic !== undefined && { basic }) }))
        const found = check(body).map(({ path, reason }) => ({ path, reason }))
        const expected = violations.map(([path, reason]) => ({ path: `/message${path}`, reason }))
        assert.deepEqual(inOrder(found), inOrder(expected))
      })
    }
  })
}

function inOrder(violations: { path: string; reason: string }[]) {
  return violations.toSorted((a, b) => (`${a.path} ${a.reason}` < `${b.path} ${b.reason}` ? -1 : 1))
}
