import { createTestDatabase } from '../support/database.ts'
import { startTemplateService } from '../support/templates.ts'

// One database and one service for all parts that are about templates and agents; each test has an account of its own.

const database = await createTestDatabase()
export const { pool } = database
export const { url, newCaller, log } = await startTemplateService(database)
