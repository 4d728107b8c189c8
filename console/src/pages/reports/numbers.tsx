import type { Table } from '../../app/csv.ts'
import * as say from '../../words/en-reports.ts'
import { number } from '../../words/numbers.ts'
import type { Summary as Counts } from '../overview/report.ts'

type Name = keyof typeof say.counts
export type Summary = Counts &
  Record<'recipients' | 'clicked' | 'replied' | 'optedOut', number> &
  Record<(typeof RATES)[number], number | null>

const RATES = ['deliveryRate', 'readRate', 'clickRate'] as const

/** All counts of a summary, each with what it is a share of. */
const ROWS: [name: Name, tone: 'plain' | 'info' | 'good' | 'bad' | 'warn', base?: Name][] = [
  ['recipients', 'plain'],
  ['accepted', 'plain'],
  ['sent', 'plain', 'accepted'],
  ['delivered', 'info', 'sent'],
  ['read', 'good', 'delivered'],
  ['clicked', 'good', 'delivered'],
  ['replied', 'good', 'delivered'],
  ['optedOut', 'warn', 'delivered'],
  ['failed', 'bad', 'accepted'],
  ['expired', 'bad', 'accepted'],
  ['smsFallback.sent', 'warn', 'accepted'],
  ['smsFallback.delivered', 'warn', 'smsFallback.sent'],
  ['smsFallback.failed', 'bad'],
  ['smsFallback.skipped', 'warn'],
]

/** Rounded as the rates of the API are. At most 1, since the range may separate two events of a message. */
const rateOf = (part: number, whole: number) => Math.min(Math.round((part / whole) * 10_000) / 10_000, 1)

function rowsOf(summary: Summary) {
  const sms = Object.entries(summary.smsFallback).map(([name, value]) => [`smsFallback.${name}`, value])
  const values: Record<Name, number> = { ...summary, ...Object.fromEntries(sms) }
  return ROWS.map(([name, tone, base]) => {
    const share = base && values[base] > 0 ? say.of(rateOf(values[name], values[base]), say.counts[base]) : ''
    return { name, tone, value: values[name], share }
  })
}

/** The counts, and the rates as the API has them: a spreadsheet can go on with both. */
export const summaryTable = (summary: Summary): Table => ({
  names: ['name', 'value'],
  rows: [...rowsOf(summary).map(({ name, value }) => [name, value]), ...RATES.map((name) => [name, summary[name]])],
})

export function NumbersTable({ summary }: { summary: Summary }) {
  return (
    <table class="report-numbers" aria-label={say.numbers}>
      <thead>
        <tr>
          <th scope="col">{say.state}</th>
          <th scope="col" class="num">
            {say.messages}
          </th>
          <th scope="col">{say.share}</th>
        </tr>
      </thead>
      <tbody>
        {rowsOf(summary).map(({ name, value, tone, share }) => (
          <tr class={`tone-${tone}`}>
            <th scope="row">
              <i /> {say.counts[name]}
            </th>
            <td class="num">{number.format(value)}</td>
            <td>{share}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
