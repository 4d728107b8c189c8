import { createTestDatabase } from '../../support/database.ts'
import { startMessageService } from '../../support/messages.ts'
import { writeCampaign, writeVolume } from './clients.ts'

// One database and one service for all parts but that about files, with an account whose exports are longer than a client who does not read
// is given ahead.

export const database = await createTestDatabase({ uncounted: 'messages are written by hand' })
export const { pool } = database
export const { url, newCaller, log } = await startMessageService(database)
export const caller = await newCaller()
export const campaignId = await writeCampaign(pool, caller)
await writeVolume(database.url, caller, campaignId)
