import { isAboutMessages } from '../../app/fresh.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { AsCurl } from '../../kit/as-curl.tsx'
import { Problem } from '../../kit/problem.tsx'
import * as overviewWords from '../../words/en-overview.ts'
import { number } from '../../words/numbers.ts'
import { useRefreshed } from './refreshed.ts'
import { dayAgo, type Summary } from './report.ts'

const SHOWN = ['accepted', 'delivered', 'read', 'failed'] as const

/** A change has to appear within a second. Herald accepts messages without an event, so the numbers are also polled, more rarely if none changes. */
const FOLLOWED = { everyMs: 750, firstMs: 1_000, pollMs: 5_000, isAbout: isAboutMessages }

/** The numbers of today so far, beside those of the whole same day last week: reports count by days. */
export function Today() {
  const { account } = useFrame()
  const report = (days: number) => `reports/messages/summary?from=${dayAgo(days)}&to=${dayAgo(days)}`
  const today = useRefreshed<Summary>(`/accounts/${account.accountId}/${report(0)}`, FOLLOWED)
  const lastWeek = useResource<Summary>(`/accounts/${account.accountId}/${report(7)}`)
  const problem = today.problem ?? lastWeek.problem
  return (
    <>
      {problem && <Problem problem={problem} onRetry={today.problem ? today.reload : lastWeek.reload} />}
      {(today.value || problem === undefined) && (
        <section>
          <div class="title-row today-title">
            <h2>{overviewWords.today}</h2>
            <span class="spring" />
            <AsCurl path={report(0)} />
          </div>
          <dl class="today">
            {SHOWN.map((name) => (
              <div class="card">
                <dt>{overviewWords.counts[name]}</dt>
                <dd>
                  {today.value === undefined ? '…' : number.format(today.value[name])}
                  <small>{lastWeek.value && overviewWords.lastWeek(lastWeek.value[name], dayAgo(7))}</small>
                </dd>
              </div>
            ))}
          </dl>
        </section>
      )}
    </>
  )
}
