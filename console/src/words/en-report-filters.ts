// The words of the filters of reports.

export const of = 'Messages'
export const single = 'Single messages'
export const ofLatest = 'The 200 latest campaigns. Older ones link to their reports.'
export const range = 'Range'
export const ranges = {
  today: 'Today',
  yesterday: 'Yesterday',
  week: 'Last 7 days',
  fortnight: 'Last 14 days',
  month: 'Last 30 days',
  quarter: 'Last 90 days',
  all: 'All time',
  own: 'Chosen days',
}
export const ends = {
  from: 'First day (UTC)',
  to: 'Last day (UTC)',
}
export const toTooEarly = 'Choose a day that is not before the first day.'
export const interval = 'Plot'
export const intervals = {
  hour: 'By hour',
  day: 'By day',
}
export const clear = 'Clear the filters'
