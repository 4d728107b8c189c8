import type { Finding, Tally } from './run.ts'

const MAX_SHOWN = 20
const MAX_REQUEST_BYTES = 1_500
const MAX_BODY_BYTES = 600

/** Readable and parseable bytes: everything but printable ASCII is escaped. */
export function shown(bytes: Buffer, most: number): string {
  const text = [...bytes.subarray(0, most)].map((byte) =>
    byte >= 0x20 && byte < 0x7f && byte !== 0x5c ? String.fromCharCode(byte) : escaped(byte),
  )
  return `${text.join('')}${bytes.length > most ? ` … (${bytes.length} bytes)` : ''}`
}

function escaped(byte: number): string {
  if (byte === 0x0d) return '\\r'
  if (byte === 0x0a) return '\\n\n    '
  return `\\x${byte.toString(16).padStart(2, '0')}`
}

/** Findings of the same kind are shown once, with their number. */
export function describeFindings(findings: Finding[], seed: number): string {
  const groups = Object.values(
    Object.groupBy(findings, ({ request, problems }) => `${request.operation.id}: ${problems.join('; ').replace(/\d+ ms/, 'ms')}`),
  )
  const texts = groups.slice(0, MAX_SHOWN).map((group = []) => {
    const { request, response, problems } = group[0] as Finding
    const { number, operation, kind, credentials, note, bytes } = request
    return [
      `FAILED ${operation.id}: ${problems.join('; ')} (${group.length} of this kind)`,
      `  repeat: npm run fuzz -- --seed ${seed} --number ${number}`,
      `  request ${number}: ${kind}, ${note || 'as documented'}, credentials ${credentials}`,
      `    ${shown(bytes, MAX_REQUEST_BYTES)}`,
      `  response: ${response.status ?? 'none'}`,
      `    ${shown(response.body, MAX_BODY_BYTES)}`,
    ].join('\n')
  })
  return [...texts, ...(groups.length > MAX_SHOWN ? [`… and ${groups.length - MAX_SHOWN} other kinds`] : [])].join('\n\n')
}

/** A row for each operation, a column for each status. */
export function tableOf({ statuses }: Tally): string {
  const columns = [...new Set([...statuses.values()].flatMap((counts) => [...counts.keys()]))].sort()
  const rows = [...statuses].map(([id, counts]) => [id, ...columns.map((status) => String(counts.get(status) ?? ''))])
  const all = [['operation', ...columns], ...rows]
  const widths = ['operation', ...columns].map((_, n) => Math.max(...all.map((row) => (row[n] as string).length)))
  return all
    .map((row) => row.map((cell, n) => (n === 0 ? cell.padEnd(widths[n] as number) : cell.padStart(widths[n] as number))).join('  '))
    .join('\n')
}
