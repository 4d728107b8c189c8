import { findRunning, readCampaignsById } from '../../campaigns/campaigns.ts'
import type { Executor } from '../../db/pool.ts'
import { forRoles, type Stream, serverSent } from './stream.ts'

/**
 * Sends the running campaigns of each stream's account with their counts, if they have changed since the stream last got them; and once more
 * when they have stopped running.
 */
export async function sendCampaigns(db: Executor, streams: Iterable<Stream>): Promise<void> {
  const ready = [...streams].filter(({ accountId, connection }) => accountId !== undefined && connection.isReady())
  const byAccount = Map.groupBy(ready, ({ accountId }) => accountId as number)
  if (byAccount.size === 0) return
  const running = await findRunning(db, [...byAccount.keys()])
  const sentBefore = ready.flatMap(({ accountId, campaigns }) =>
    [...campaigns.keys()].map((campaignId) => ({ campaignId, accountId: accountId as number })),
  )
  const accountOf = new Map([...sentBefore, ...running].map(({ campaignId, accountId }) => [campaignId, accountId]))
  if (accountOf.size === 0) return
  const runningIds = new Set(running.map(({ campaignId }) => campaignId))
  for (const campaign of await readCampaignsById(db, [...accountOf.keys()])) {
    const { campaignId } = campaign
    const text = serverSent(JSON.stringify(campaign), { event: 'campaign' })
    const ofAccount = byAccount.get(accountOf.get(campaignId) as number) ?? []
    send(ofAccount, campaignId, text, runningIds.has(campaignId))
  }
}

function send(streams: Stream[], campaignId: string, text: string, isRunning: boolean): void {
  const written = forRoles(text)
  for (const stream of streams) {
    const { campaigns, connection } = stream
    if (isRunning ? campaigns.get(campaignId) === text : !campaigns.has(campaignId)) continue
    connection.write(written(stream))
    if (isRunning) campaigns.set(campaignId, text)
    else campaigns.delete(campaignId)
  }
}
