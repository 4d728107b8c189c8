import { createTestDatabase } from '../support/database.ts'
import { startTemplateService } from '../support/templates.ts'

// One database and one service for all files about templates and agents. Each test has its own account.

const database = await createTestDatabase()
export const { pool } = database
export const { url, newCaller, log } = await startTemplateService(database)
