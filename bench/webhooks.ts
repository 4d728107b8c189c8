import { parseArgs } from 'node:util'
import { measureBacklog } from './webhook-backlog.ts'
import { measureIsolation } from './webhook-isolation.ts'
import { measureRate } from './webhook-rate.ts'
import { setScene } from './webhook-scene.ts'

// How fast events come to the endpoints of callers, what one costs, and what a bad endpoint costs the others: `npm run bench:webhooks`. Worker,
// PostgreSQL, sinks and yardstick share the machine, so figures of one run can be compared with one another, not with those of another
// machine. Ends with a status of 1 where a bar is missed; not with --quick, whose seconds on a shared machine are too few to judge by.

const { values } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, only: { type: 'string', default: 'rate,isolation,backlog' } },
})
const parts = values.only.split(',')
const scene = await setScene()
const bars: boolean[] = []
try {
  if (parts.includes('rate')) await measureRate(scene, values.quick ? 10_000 : 100_000, values.quick ? 3 : 1)
  if (parts.includes('isolation')) {
    bars.push(await measureIsolation(scene, values.quick ? { pairs: 3, seconds: 5 } : { pairs: 5, seconds: 20 }))
  }
  if (parts.includes('backlog')) bars.push(await measureBacklog(scene, values.quick ? 20_000 : 100_000))
} finally {
  await scene.close()
}
process.exit(values.quick || bars.every(Boolean) ? 0 : 1)
