import { parseArgs } from 'node:util'
import { measureExports } from './report-exports.ts'
import { measureFold } from './report-fold.ts'
import { measurePages } from './report-pages.ts'
import { setScene } from './report-scene.ts'
import { measureSummaries } from './report-summaries.ts'

// How long summaries and pages of lists take with a million messages, and how fast exports are: `npm run bench:reports`. Service, PostgreSQL
// and readers share the machine. Ends with a status of 1 where a mark is missed; not with --quick, whose twentieth of the rows says nothing.

const { values } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, only: { type: 'string', default: 'fold,summaries,pages,exports' } },
})
const parts = values.only.split(',')
const scene = await setScene(values.quick ? 50_000 : 1_000_000)
const kept: boolean[] = []
try {
  if (parts.includes('fold')) await measureFold(scene, values.quick ? 20_000 : 200_000)
  const herald = await scene.startService()
  if (parts.includes('summaries')) kept.push(await measureSummaries(scene, herald, values.quick ? 50 : 500))
  if (parts.includes('pages')) kept.push(await measurePages(scene, herald, values.quick ? 1 : 20))
  if (parts.includes('exports')) kept.push(await measureExports(scene, herald, values.quick ? 1 : 3))
} finally {
  await scene.close()
}
if (values.quick) process.stdout.write('\nThe marks are for a million messages: this run is not judged by them.\n')
process.exit(values.quick || kept.every(Boolean) ? 0 : 1)
