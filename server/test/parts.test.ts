import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'

const ROOT = join(import.meta.dirname, '..', '..')
const foldersOf = (name: string) => new Set(globSync(`{server,simulator}/test/**/${name}`, { cwd: ROOT }).map((path) => dirname(path)))

test('every part is run: its folder has an all.test.ts', () => {
  const parts = foldersOf('*.part.ts')
  assert.ok(parts.size > 0)
  assert.deepEqual(parts.difference(foldersOf('all.test.ts')), new Set())
})
