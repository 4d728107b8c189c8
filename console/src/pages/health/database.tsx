import { Facts, Pill } from '../../kit/display.tsx'
import * as say from '../../words/en-health.ts'
import type { Database } from './health-types.ts'

export function DatabaseFacts({ database }: { database: Database }) {
  const { version, schema, migrations, lastMigration, standbys } = database
  return (
    <section class="health-part">
      <h2>{say.database}</h2>
      <div class="card health-database">
        <Facts
          facts={[
            ['PostgreSQL', version],
            [say.schema, say.schemas[schema]],
            [say.migrations, say.migration(migrations, lastMigration)],
            [
              say.standbys,
              <>
                {standbys.connected === null ? say.hidden : say.connected(standbys.connected)}{' '}
                {standbys.missing > 0 && <Pill tone="bad">{say.missing(standbys.missing)}</Pill>}{' '}
                {standbys.commitsWait && <Pill tone="bad">{say.commitsWait}</Pill>}
              </>,
            ],
          ]}
        />
      </div>
    </section>
  )
}
