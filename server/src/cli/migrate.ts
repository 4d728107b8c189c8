import { migrate } from '../db/migrate.ts'
import { declareUnaudited, report, reportingCommand, withDatabase } from './command.ts'

const command = declareUnaudited(reportingCommand('migrate', 'bring the database to the schema of this version'))

/** The table schema_migrations says what was applied, and when. */
export const migrateCommand = command.action(async (options) => {
  const applied = await withDatabase((pool) => migrate(pool), { role: 'migration' })
  report(options, { applied }, () => (applied.length === 0 ? 'The schema is up to date.' : `Applied ${applied.join(', ')}.`))
})
