import { createTestDatabase } from '../../support/database.ts'
import { startMessageService } from '../../support/messages.ts'
import { writeCampaign, writeVolume } from './clients.ts'

// One database and one service for most files, with an account whose exports are larger than the buffers for a client that does not read.

export const database = await createTestDatabase({ uncounted: 'messages are written by hand' })
export const { pool } = database
export const { url, newCaller, log } = await startMessageService(database)
export const caller = await newCaller()
export const campaignId = await writeCampaign(pool, caller)
await writeVolume(database.url, caller, campaignId)
