import { type HotStatement, hotStatements } from './hot-statements.ts'

/** The pages show the tables of this month. */
const MONTH = 'messages_2026_07'

/** The pages of docs/sql: the final text of every hot statement, by feature. */
export function sqlPages(): Record<string, string> {
  const pages = Object.entries(hotStatements(MONTH)).map(([feature, statements]) => [
    `docs/sql/${feature}.sql`,
    pageOf(feature, statements),
  ])
  return Object.fromEntries(pages)
}

function pageOf(feature: string, statements: HotStatement[]): string {
  const header = `-- The hot statements of ${feature}, as PostgreSQL gets them. "npm run generate" writes this page from server/scripts/hot-statements.ts.
-- Tables of a month have the name that they have in July 2026. To try one in psql: paste it, then run
--   set plan_cache_mode = force_generic_plan; explain execute "name" (null, …);
`
  return [header, ...statements.map(statementText)].join('\n')
}

function statementText({ name, file, does, text, settings }: HotStatement): string {
  const before = settings === undefined ? '' : `-- Its transaction runs before it:\n${commented(settings)}\n`
  return `-- ${does} (server/src/${file})\n${before}prepare "${name}" as\n${indented(text)};\n`
}

function commented(text: string): string {
  return text
    .split('\n')
    .map((line) => `--   ${line.trim()}`)
    .join('\n')
}

/** Lines that begin a clause. Other lines continue the line before. */
const CLAUSE =
  /^(with|select|from|where|group by|order by|limit|offset|for (update|no key update|key share)|(left |cross )?join|lateral|insert|update|delete|merge|set|returning|on conflict|union|values|--|\(select|\))/

/** Indents each line by the parentheses that are open before it: the parts of a composed text have indentations of their own. */
export function indented(text: string): string {
  let depth = 0
  // The name of a step follows on the line that ends the previous step.
  const joined = text.replace(/(\),|recursive)\s+(?=\w+ as )/g, '$1 ')
  const lines = joined.split('\n').flatMap((line) => line.trim() || [])
  return lines
    .map((line) => {
      const closing = /^\)+/.exec(line)?.[0].length ?? 0
      const level = depth - closing + (CLAUSE.test(line) ? 0 : 1)
      // Parentheses in texts and comments do not count.
      const code = line.replace(/'[^']*'|--.*/g, '')
      depth += code.split('(').length - code.split(')').length
      return '  '.repeat(level) + line
    })
    .join('\n')
}
