import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { folderCycles, readSources, unusedExports } from './support/imports.ts'

const sources = readSources()

describe('the imports of the source', () => {
  it('have no cycle between the folders of the server', () => {
    assert.deepEqual(folderCycles(sources, 'server/src'), [])
  })

  it('use every export in another file', () => {
    assert.deepEqual(unusedExports(sources, ['server/src', 'simulator/src']), [])
  })
})

describe('the check of imports', () => {
  const broken = new Map([
    ['src/a/one.ts', "import type { Two } from '../b/two.ts'\nexport const one = 1\nexport type Unused = string"],
    ['src/b/two.ts', "const { three } = await import('../c/three.ts')\nexport type Two = 2"],
    ['src/c/three.ts', "import { four } from '../d/four.ts'\nimport { one as uno } from '../a/one.ts'\nexport const three = 3"],
    ['src/d/four.ts', 'export function four() {}\nexport async function* five() {}'],
  ])

  it('reports a cycle through several folders once, with its imports', () => {
    assert.deepEqual(folderCycles(broken, 'src'), [
      ['src/a/one.ts imports src/b/two.ts', 'src/b/two.ts imports src/c/three.ts', 'src/c/three.ts imports src/a/one.ts'],
    ])
  })

  it('reports an export that no other file imports', () => {
    assert.deepEqual(unusedExports(broken, ['src/a', 'src/d']), ['src/a/one.ts: Unused', 'src/d/four.ts: five'])
  })

  it('accepts an import of all names, static or dynamic', () => {
    for (const text of ["import * as all from './d/four.ts'", "await load(import('./d/four.ts'))", "export * from './d/four.ts'"]) {
      assert.deepEqual(unusedExports(new Map([...broken, ['src/main.ts', text]]), ['src/d']), [], text)
    }
  })
})
