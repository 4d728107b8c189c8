import { Facts, Pill } from '../../kit/display.tsx'
import { words } from '../../words/words.ts'
import type { Database } from './health-types.ts'

export function DatabaseFacts({ database }: { database: Database }) {
  const { database: w } = words.health
  const { version, schema, migrations, lastMigration, standbys } = database
  return (
    <section class="health-part">
      <h2>{w.title}</h2>
      <div class="card health-database">
        <Facts
          facts={[
            ['PostgreSQL', version],
            [w.schema, w.schemas[schema]],
            [w.migrations, w.migration(migrations, lastMigration)],
            [
              w.standbys,
              <>
                {standbys.connected === null ? w.hidden : w.connected(standbys.connected)}{' '}
                {standbys.missing > 0 && <Pill tone="bad">{w.missing(standbys.missing)}</Pill>}{' '}
                {standbys.commitsWait && <Pill tone="bad">{w.commitsWait}</Pill>}
              </>,
            ],
          ]}
        />
      </div>
    </section>
  )
}
