import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { dirname } from 'node:path'
import { test } from 'node:test'

const foldersOf = (pattern: string) => new Set(globSync(pattern, { cwd: import.meta.dirname }).map((path) => dirname(path)))

test('every part is run: its folder has an all.test.ts', () => {
  const parts = foldersOf('**/*.part.ts')
  assert.ok(parts.size > 0)
  assert.deepEqual(parts.difference(foldersOf('**/all.test.ts')), new Set())
})
