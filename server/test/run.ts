import { existsSync, globSync, statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { run } from 'node:test'
import { spec, type TestEvent } from 'node:test/reporters'
import { parseArgs } from 'node:util'
import { globalSetup, globalTeardown } from './support/global-setup.ts'

/**
 * `npm test [-- PATHS]`: runs the tests of these files or folders, or all tests. Files share a process, one after the other: a process of its
 * own costs 1.5 s of CPU to load and compile the program, more than most files take. The files of a folder run in the same process, with those
 * of other folders unless the folder has a `shared.ts` or is not the server's. A file in the folder `alone` gets its own process, since it
 * measures memory or CPU, or takes long and mostly waits.
 */
const ROOT = resolve(import.meta.dirname, '..', '..')
const ALONE = 'server/test/alone'
/** Folders without a `shared.ts` share so many processes. More would balance better, but each costs 1.5 s of CPU. */
const SHARED_PROCESSES = 6
/** The time limit of a test. Only a test that hangs reaches it, even on a machine with much other work. */
const TEST_TIMEOUT_MS = 600_000

const { values, positionals } = parseArgs({ options: { name: { type: 'string' } }, allowPositionals: true })
const files = findTests(positionals.length === 0 ? ['server/test', 'simulator/test'] : positionals)
if (files.length === 0) fail(`There is no *.test.ts in ${positionals.join(', ')}.`)
// A test of the console keeps a browser busy beside its process, and some of them measure how fast the page is.
const processes = files.some((file) => file.startsWith('console/')) ? availableParallelism() : 2 * availableParallelism()
const totals = { passed: 0, failed: 0, skipped: 0 }
const startedAt = performance.now()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => globalTeardown().finally(() => fail(`Ended by ${signal}.`)))
await globalSetup()
try {
  // The largest first, so that none of them is left to run alone at the end.
  const waiting = groupsOf(files).sort((a, b) => sizeOf(b) - sizeOf(a))
  const runWaiting = async (): Promise<void> => {
    for (let group = waiting.shift(); group !== undefined; group = waiting.shift()) await runGroup(group)
  }
  await Promise.all(Array.from({ length: processes }, runWaiting))
} finally {
  await globalTeardown()
}
const seconds = Math.round((performance.now() - startedAt) / 1_000)
const summary = `${totals.passed} tests passed, ${totals.failed} failed, ${totals.skipped} skipped, in ${seconds} s`
if (totals.failed > 0 || totals.passed === 0) fail(summary)
print(summary)

function findTests(paths: string[]): string[] {
  const isFolder = (path: string) => statSync(join(ROOT, path), { throwIfNoEntry: false })?.isDirectory() === true
  const patterns = paths.map((path) => relative(ROOT, resolve(path))).map((path) => (isFolder(path) ? `${path}/**/*.test.ts` : path))
  return globSync(patterns, { cwd: ROOT }).sort()
}

/** The files that run in one process. Each folder goes to the group that is smallest so far, so that the groups have about the same size. */
function groupsOf(files: string[]): string[][] {
  const isOnItsOwn = (name: string) => dirname(name) === ALONE || !name.startsWith('server/') || existsSync(join(ROOT, name, 'shared.ts'))
  const folders = Map.groupBy(files, (file) => (dirname(file) === ALONE ? file : dirname(file)))
  const [own, together] = [true, false].map((is) => [...folders].filter(([name]) => isOnItsOwn(name) === is).map(([, group]) => group))
  const groups: string[][] = Array.from({ length: SHARED_PROCESSES }, () => [])
  for (const folder of (together as string[][]).sort((a, b) => sizeOf(b) - sizeOf(a))) {
    groups.sort((a, b) => sizeOf(a) - sizeOf(b))[0]?.push(...folder)
  }
  return [...(own as string[][]), ...groups.filter((group) => group.length > 0)]
}

/** The bytes of the files, with what else is in their folders: it may list what a test goes through. */
function sizeOf(group: string[]): number {
  const others = [...new Set(group.map(dirname))].flatMap((folder) => globSync(`${folder}/*.ts`, { cwd: ROOT, exclude: ['**/*.test.ts'] }))
  return [...group, ...others].reduce((bytes, file) => bytes + statSync(join(ROOT, file)).size, 0)
}

/**
 * Runs the files of a group in one process. Prints a line for each file, with what its tests measured, and everything about a file in which a
 * test failed. With `--name`, each file has its own process, since node:test would skip the tests that stand for the files; then it prints a
 * line for each test or suite.
 */
async function runGroup(group: string[]): Promise<void> {
  const selected =
    values.name === undefined
      ? { files: [join(import.meta.dirname, 'support', 'run-files.ts')], argv: group }
      : { files: group.map((file) => join(ROOT, file)), testNamePatterns: values.name }
  const events = run({ cwd: ROOT, timeout: TEST_TIMEOUT_MS, ...selected })
  let ofFile: TestEvent[] = []
  for await (const event of events as AsyncIterable<TestEvent>) {
    // The check of a database that is dropped after its file reports a difference here, and makes the process fail.
    if (event.type === 'test:stderr') {
      print(event.data.message.trimEnd())
      continue
    }
    ofFile.push(event)
    if (!isResult(event)) continue
    count(event)
    if (event.data.nesting > 0) continue
    if (event.type === 'test:fail') print(await text(Readable.from(ofFile).compose(spec())))
    else print([`✔ ${event.data.name} (${Math.round(event.data.details.duration_ms)} ms)`, ...measuredIn(ofFile)].join('\n'))
    ofFile = []
  }
}

/** What the tests of a file have noted with `t.diagnostic`. */
function measuredIn(events: TestEvent[]): string[] {
  return events.flatMap(({ type, data }) => (type === 'test:diagnostic' && data.nesting > 0 ? [`  ℹ ${data.message}`] : []))
}

type Result = Extract<TestEvent, { type: 'test:pass' | 'test:fail' }>

function isResult(event: TestEvent): event is Result {
  return event.type === 'test:pass' || event.type === 'test:fail'
}

/** Counts tests. Suites and files are not counted, unless one fails by itself and not by its tests. */
function count({ type, data }: Result): void {
  const isFile = data.nesting === 0 && (values.name === undefined || data.name.endsWith('.test.ts'))
  const hasTests = isFile || data.details.type === 'suite'
  if (type === 'test:pass') totals[data.skip === undefined ? 'passed' : 'skipped'] += hasTests ? 0 : 1
  else if (!(hasTests && (data.details.error as { failureType?: string }).failureType === 'subtestsFailed')) totals.failed += 1
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

function fail(line: string): never {
  print(line)
  process.exit(1)
}
