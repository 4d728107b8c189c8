import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The text of each file, by its path from the root of the repository. */
export type Sources = Map<string, string>

/** `names`: the imported names; undefined if the import does not list them, as in `import * as`. */
type Import = { from: string; to: string; names: string[] | undefined }

const ROOT = join(import.meta.dirname, '../../..')

export function readSources(): Sources {
  const paths = globSync(['server/**/*.ts', 'simulator/**/*.ts', 'bench/**/*.ts', 'console/**/*.ts'], {
    cwd: ROOT,
    exclude: ['**/node_modules/**'],
  })
  return new Map(paths.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]))
}

/** The first group is the names, the second the path. */
const STATIC = /^(?:import|export)\s+(?:type\s+)?(?:\{([^}]*)\}|\*(?:\s+as\s+\w+)?|\w+)\s+from\s+'(\.[^']+)'/gm
const DESTRUCTURED = /\{([^{}]*)\}\s*=\s*await\s+import\('(\.[^']+)'\)/g
const MEMBER = /\(await\s+import\('(\.[^']+)'\)\)\.(\w+)/g
const BARE = /\bimport\s*\(?\s*'(\.[^']+)'/g

function importsOf(path: string, text: string): Import[] {
  const to = (relative: string) => join(path, '..', relative)
  const listed = [...text.matchAll(STATIC), ...text.matchAll(DESTRUCTURED)].map(([, names, target = '']) => ({
    from: path,
    to: to(target),
    names: names?.split(',').map(
      (name) =>
        name
          .trim()
          .replace(/^type /, '')
          .split(/ as |:/)[0] as string,
    ),
  }))
  const members = [...text.matchAll(MEMBER)].map(([, target = '', name = '']) => ({ from: path, to: to(target), names: [name] }))
  const found = new Set([...listed, ...members].map((one) => one.to))
  const bare = [...text.matchAll(BARE)].map(([, target = '']) => ({ from: path, to: to(target), names: undefined }))
  return [...listed, ...members, ...bare.filter((one) => !found.has(one.to))]
}

/** The folder right below `root` that a file is in; a file that is in none stands for itself. */
function folderOf(root: string, path: string): string {
  return path.slice(root.length + 1).split('/')[0] as string
}

/** Cycles of imports between the folders below `root`, each as the imports that make it. Imports of types count. */
export function folderCycles(sources: Sources, root: string): string[][] {
  const edges = new Map<string, Map<string, Import>>()
  for (const [path, text] of sources) {
    if (!path.startsWith(`${root}/`)) continue
    for (const one of importsOf(path, text).filter(({ to }) => to.startsWith(`${root}/`))) {
      const [from, to] = [folderOf(root, one.from), folderOf(root, one.to)]
      if (from !== to) edges.set(from, (edges.get(from) ?? new Map()).set(to, one))
    }
  }
  return [...edges.keys()].flatMap((folder) => {
    const cycle = shortestWay(edges, folder, folder)
    // Every folder of a cycle finds it. Report it once, from the folder that comes first.
    return cycle === undefined || cycle.some(({ from }) => folderOf(root, from) < folder)
      ? []
      : [cycle.map(({ from, to }) => `${from} imports ${to}`)]
  })
}

function shortestWay(edges: Map<string, Map<string, Import>>, start: string, end: string): Import[] | undefined {
  const ways = [...(edges.get(start) ?? [])].map(([folder, one]) => ({ folder, way: [one] }))
  const seen = new Set<string>()
  for (const { folder, way } of ways) {
    if (folder === end) return way
    if (seen.has(folder)) continue
    seen.add(folder)
    for (const [next, one] of edges.get(folder) ?? []) ways.push({ folder: next, way: [...way, one] })
  }
  return undefined
}

const EXPORT = /^export\s+(?:abstract\s+)?(?:async\s+)?(?:function\*?|const|let|class|type|interface)\s+(\w+)/gm

/** The exports of the files below `roots` that no other file imports, as `path: name`. */
export function unusedExports(sources: Sources, roots: readonly string[]): string[] {
  const used = Map.groupBy(
    [...sources].flatMap(([path, text]) => importsOf(path, text)),
    ({ to }) => to,
  )
  return [...sources].flatMap(([path, text]) => {
    if (!roots.some((root) => path.startsWith(`${root}/`)) || path.endsWith('.d.ts')) return []
    const imports = used.get(path) ?? []
    if (imports.some(({ names }) => names === undefined)) return []
    const names = new Set(imports.flatMap((one) => one.names ?? []))
    const exported = new Set([...text.matchAll(EXPORT)].map(([, name = '']) => name))
    return [...exported].filter((name) => !names.has(name)).map((name) => `${path}: ${name}`)
  })
}
