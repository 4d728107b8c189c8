import { dayAgo } from '../overview/report.ts'

/** Days of UTC, both included, as reports take them. An absent end is open. */
export type Days = { from?: string; to?: string }

/** Ranges that a person chooses by name: how many days ago they begin and end. They move on with the days, so a saved link stays useful. */
const PRESETS = {
  today: [0, 0],
  yesterday: [1, 1],
  week: [6, 0],
  fortnight: [13, 0],
  month: [29, 0],
  quarter: [89, 0],
  all: [],
} as const
export type Preset = keyof typeof PRESETS
export const PRESET_NAMES = Object.keys(PRESETS) as Preset[]

export const INTERVALS = ['hour', 'day'] as const
export type Interval = (typeof INTERVALS)[number]

function daysOf(preset: Preset): Days {
  const [first, last] = PRESETS[preset]
  return first === undefined ? {} : { from: dayAgo(first), to: dayAgo(last) }
}

/** What the address asks for. */
export type Wanted = {
  campaignId: string | undefined
  /** `own`: the days of the address. */
  range: Preset | 'own'
  days: Days
  interval: Interval
}

/** Somebody may have typed the address: what is no day is ignored. */
const dayIn = (query: URLSearchParams, name: 'from' | 'to'): Days => {
  const day = query.get(name) ?? ''
  return /^\d{4}-\d\d-\d\d$/.test(day) && Date.parse(day) > 0 ? { [name]: day } : {}
}

export function wantedOf(query: URLSearchParams): Wanted {
  const campaignId = query.get('campaignId') || undefined
  const own: Days = { ...dayIn(query, 'from'), ...dayIn(query, 'to') }
  const isOwn = Boolean(own.from ?? own.to)
  const named = PRESET_NAMES.find((preset) => preset === query.get('range'))
  // A campaign is short, and may be years old. Single messages never end.
  const preset = named ?? (campaignId === undefined ? 'fortnight' : 'all')
  const days = isOwn ? own : daysOf(preset)
  const asked = INTERVALS.find((each) => each === query.get('interval'))
  // The API counts single messages by day only.
  const interval = campaignId === undefined ? 'day' : (asked ?? usualInterval(days))
  return { campaignId, range: isOwn ? 'own' : preset, days, interval }
}

const DAY_MS = 86_400_000
const MAX_DAYS_BY_HOUR = 15

function usualInterval({ from, to }: Days): Interval {
  if (from === undefined || to === undefined) return 'hour'
  return Date.parse(to) - Date.parse(from) < MAX_DAYS_BY_HOUR * DAY_MS ? 'hour' : 'day'
}

/** Herald would refuse the range. */
export const isBackwards = ({ from, to }: Days) => from !== undefined && to !== undefined && from > to

/** The reports, below /v1 and below the account alike. */
export const reportsOf = (campaignId: string | undefined) =>
  campaignId === undefined ? 'reports/messages' : `reports/campaigns/${encodeURIComponent(campaignId)}`

/** A path with its query, if it has any. */
export const withQuery = (path: string, query: Record<string, string>) => [path, new URLSearchParams(query)].filter(String).join('?')
