import { createTestDatabase } from '../support/database.ts'
import { startMessageService } from '../support/messages.ts'

// One database and one service for all files about messages. Each test has its own account.

export const database = await createTestDatabase()
export const { pool } = database
export const { url, newCaller, log } = await startMessageService(database)
