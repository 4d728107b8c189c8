import { createTestDatabase } from '../support/database.ts'
import { startMessageService } from '../support/messages.ts'

// One database and one service for all parts that are about messages; each test has an account of its own.

export const database = await createTestDatabase()
export const { pool } = database
export const { url, newCaller, log } = await startMessageService(database)
