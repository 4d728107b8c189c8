import type { Readable } from 'node:stream'
import type pg from 'pg'
import { ZipFile } from 'yazl'
import { AGGREGATED, readAggregations } from '../aggregations.ts'
import { requireCampaign } from '../campaign.ts'
import { readSummary, type Summary } from '../summary.ts'
import { openCopy, type Source } from './copy.ts'
import { BYTE_ORDER_MARK } from './csv.ts'
import { chooseReading, copyActions, copyRecipients } from './rows.ts'

// A million messages (207 MB) compress to 31 MB in 4.9 s of CPU time in total; at level 6, to 27 MB in 7.6 s.
const COMPRESSION_LEVEL = 1

/** Reads all four files in one transaction, so they show the same moment: the lists contain what the summary counts. */
export async function openArchive(
  client: pg.ClientBase,
  accountId: number,
  campaignId: string,
  { bom = false } = {},
): Promise<Source & { id: string }> {
  await client.query('begin transaction isolation level repeatable read, read only')
  const campaign = await requireCampaign(client, accountId, campaignId)
  const summary = await readSummary(client, accountId, campaign.id, {})
  const aggregations = await readAggregations(client, accountId, campaign.id, {}, 'day')
  const reading = await chooseReading(client, summary.accepted, campaign)

  const zip = new ZipFile()
  const body = zip.outputStream as Readable
  const options = { compressionLevel: COMPRESSION_LEVEL, mtime: new Date() }
  const front = Buffer.from(bom ? BYTE_ORDER_MARK : '')
  zip.addBuffer(Buffer.concat([front, summaryCsv(campaign.id, summary)]), 'summary.csv', options)
  zip.addBuffer(Buffer.concat([front, toCsv(aggregations.items, ['period', ...AGGREGATED])]), 'aggregations.csv', options)
  const isRead = new Promise<void>((resolve) => {
    // Each file starts when the previous one has been written.
    const add = (name: string, statement: string, whenRead: () => unknown) =>
      zip.addReadStreamLazy(name, options, (give) => {
        const file = openCopy(client, statement, { bom })
        // Otherwise the archive would wait for the rest forever.
        file.body.on('error', (error) => body.destroy(error))
        void file.isRead.then(whenRead)
        give(null, file.body)
      })
    add('recipients.csv', copyRecipients(accountId, campaign, reading), () => {})
    add('actions.csv', copyActions(campaign), resolve)
  })
  zip.end()
  return { id: campaign.id, body, isRead }
}

function summaryCsv(campaignId: string, { smsFallback: sms, ...counts }: Summary): Buffer {
  const ofSms = { smsSent: sms.sent, smsDelivered: sms.delivered, smsFailed: sms.failed, smsSkipped: sms.skipped }
  return toCsv([{ campaignId, ...counts, ...ofSms }])
}

/** For numbers, ids and days only, which need no quotes. */
function toCsv(rows: Record<string, string | number | null>[], names: readonly string[] = Object.keys(rows[0] ?? {})): Buffer {
  const lines = [names, ...rows.map((row) => names.map((name) => row[name] ?? ''))]
  return Buffer.from(lines.map((cells) => `${cells.join(',')}\r\n`).join(''))
}
