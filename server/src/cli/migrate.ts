import { migrate } from '../db/migrate.ts'
import { report, reportingCommand, withDatabase } from './command.ts'

export const migrateCommand = reportingCommand('migrate', 'bring the database to the schema of this version').action(async (options) => {
  const applied = await withDatabase((pool) => migrate(pool), { role: 'migration' })
  report(options, { applied }, () => (applied.length === 0 ? 'The schema is up to date.' : `Applied ${applied.join(', ')}.`))
})
