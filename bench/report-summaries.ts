import { percentile, printTable } from './measure.ts'
import type { HeraldProcess } from './processes.ts'
import { reader, type Scene } from './report-scene.ts'

// How long a summary takes, whatever there is to sum up.

const MARK_MS = 20
const WARM_UP = 20

/** Returns whether the mark is kept. */
export async function measureSummaries(scene: Scene, herald: HeraldProcess, each: number): Promise<boolean> {
  const { get, close } = reader(herald)
  const { campaigner, sender, border } = scene
  const day = (days: number) => new Date(border.getTime() + days * 86_400_000).toISOString().slice(0, 10)
  const range = `?from=${day(-1)}&to=${day(1)}`
  const campaign = `/reports/campaigns/${campaigner.campaignId}`
  const asked = [
    // What of it is the machine, and not the reports.
    { what: 'for comparison: the list of agents, one', path: '/agents', caller: sender },
    { what: 'summary of the campaign', path: `${campaign}/summary`, caller: campaigner },
    { what: 'summary of the campaign, three days', path: `${campaign}/summary${range}`, caller: campaigner },
    { what: 'summary of the messages', path: '/reports/messages/summary', caller: sender },
    { what: 'summary of the messages, three days', path: `/reports/messages/summary${range}`, caller: sender },
    { what: 'aggregations of the campaign, by hour', path: `${campaign}/aggregations?interval=hour`, caller: campaigner },
    { what: 'aggregations of the messages, by day', path: '/reports/messages/aggregations', caller: sender },
  ]
  const rows: string[][] = []
  let slowest = 0
  for (const { what, path, caller } of asked) {
    for (let n = 0; n < WARM_UP; n += 1) await get(path, caller)
    const taken: number[] = []
    for (let n = 0; n < each; n += 1) taken.push((await get(path, caller)).ms)
    rows.push([what, ...[percentile(taken, 0.5), percentile(taken, 0.99), Math.max(...taken)].map((ms) => ms.toFixed(1))])
    if (what.startsWith('summary')) slowest = Math.max(slowest, percentile(taken, 0.99))
  }
  const { body } = await get<{ accepted: number }>(`${campaign}/summary`, campaigner)
  if (body.accepted !== scene.messages) throw new Error(`${body.accepted} of ${scene.messages} messages are in the summary`)
  await close()
  process.stdout.write('\n')
  printTable([`${each} of each, one after the other, ms`, '50 %', '99 %', 'longest'], rows)
  process.stdout.write(`The mark of ${MARK_MS} ms for summaries is ${slowest < MARK_MS ? 'kept' : 'missed'}.\n`)
  return slowest < MARK_MS
}
