import { createTemplate } from '../../server/src/templates/templates.ts'
import { saturateHttp } from '../load/connections.ts'
import { ratioAtLeast } from '../measure/figures.ts'
import { cpuMs, cpuOfAll } from '../measure/process-usage.ts'
import { reportRates, showRate, sideOf, takeTurns, warmUp } from '../measure/rounds.ts'
import type { Bench } from '../part.ts'
import { createBenchAgent, createSender, MESSAGE, messageRequest, PERSONAL, VALUES } from '../setup/accounts.ts'
import { openPool, postmasterIn } from '../setup/postgres.ts'
import { startHerald, startPeer } from '../setup/processes.ts'

// `POST /v1/messages` with credentials, limits and idempotency keys, committed before each 202. The bare route has the same schemas and stores
// nothing. Limits are in memory, as on the embedded database, and beside that in the database, as several nodes have them.

const TARGET = ratioAtLeast(0.78)

export async function measureAccept(bench: Bench): Promise<void> {
  const { seconds, rounds } = bench.quick ? { seconds: 1, rounds: 3 } : { seconds: 5, rounds: 7 }
  const peer = await startPeer('bare-route')
  const api = await startHerald(['--only', 'api'])
  const node = await startHerald(['--only', 'api'], { HERALD_DATABASE_URL: api.databaseUrl })
  const { pool } = openPool(api.databaseUrl)
  await createBenchAgent(pool)
  const account = await createSender(pool)
  const template = async (message: typeof MESSAGE) =>
    (await createTemplate(pool, account.accountId, { name: 'Bench', basic: false, status: 'APPROVED', message })).id
  const [templateId, personalId] = [await template(MESSAGE), await template(PERSONAL)]
  const contents = {
    inline: { message: { inline: MESSAGE } },
    template: { message: { templateId } },
    'inline with variables': { message: { inline: PERSONAL }, variables: VALUES },
    'template with variables': { message: { templateId: personalId }, variables: VALUES },
  }
  const postmaster = postmasterIn(api.dataDir)
  for (const [what, fields] of Object.entries(contents)) {
    const request = () => messageRequest(account, fields)
    const bare = sideOf('bare route', () => saturateHttp({ url: peer.url, request }, seconds, () => ({ API: cpuMs(peer.child) })))
    const ours = sideOf(`accepted, ${what}`, () =>
      saturateHttp({ url: api.url, request }, seconds, () => cpuOfAll({ API: api.child }, postmaster)),
    )
    const nodes = sideOf(`accepted, ${what}, limits in the database`, () => saturateHttp({ url: node.url, request }, seconds))
    const sides = what === 'inline' ? [bare, ours, nodes] : [bare, ours]
    await warmUp(sides)
    await takeTurns(bench, sides, { rounds, show: showRate })
    reportRates(bench, ours, bare, TARGET)
    if (what === 'inline') reportRates(bench, nodes, bare)
  }
}
