import type { CsvRecord } from '../../../../../server/src/groups/csv-records.ts'
import { Select } from '../../../kit/controls.tsx'
import { Pill } from '../../../kit/display.tsx'
import * as groupWords from '../../../words/en-groups.ts'
import * as say from '../../../words/en-import.ts'
import { type Column, type Columns, columnsOf, isNumber, namesOf, problemOf, USES, withUse } from './columns.ts'
import { PREVIEWED } from './file-head.ts'
import type { Chosen } from './read-file.ts'

type Props = { chosen: Chosen; onChange: (columns: Columns) => void }

/** The first lines of the file, as Herald will read them. Above each column is what it has. */
export function Preview({ chosen: { head, columns: chosen }, onChange }: Props) {
  const { columns, hasHeader } = chosen
  const records = head.records.slice(hasHeader ? 1 : 0).slice(0, PREVIEWED)
  const names = namesOf(columns)
  const title = say.preview(records.length)
  return (
    <div class="card import-preview">
      <h2>{title}</h2>
      <label class="check">
        <input
          type="checkbox"
          checked={hasHeader}
          onChange={() => onChange({ hasHeader: !hasHeader, columns: columnsOf(head.records, !hasHeader) })}
        />
        {say.hasHeader}
      </label>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a table that scrolls must be reachable by the keyboard */}
      <section class="preview-scroll" tabIndex={0} aria-label={title}>
        <table>
          <thead>
            <tr>
              <th scope="col" class="num">
                {say.line}
              </th>
              {columns.map((column, index) => (
                <th scope="col">
                  <Select
                    label={column.name}
                    value={column.use}
                    options={optionsOf(column, names[index] as string)}
                    onChange={(use) => onChange({ hasHeader, columns: withUse(columns, index, use) })}
                  />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {records.map((record) => (
              <Row key={record.line} record={record} columns={columns} />
            ))}
          </tbody>
        </table>
      </section>
    </div>
  )
}

/** `unique`: the name under which Herald keeps the column now. */
const optionsOf = ({ name, use }: Column, unique: string) =>
  USES.map((value) => ({
    value,
    text: value === 'attribute' ? say.attribute(use === value ? unique : name) : groupWords.columns[value],
  }))

function Row({ record, columns }: { record: CsvRecord; columns: Column[] }) {
  const problem = problemOf(record, columns)
  return (
    <tr class={problem && 'is-rejected'}>
      <td class="num preview-line">{record.line}</td>
      {'fields' in record && problem === undefined ? (
        record.fields.map((text, index) => {
          const { name, use } = columns[index] as Column
          return (
            <td data-name={name}>
              {text}
              {use === 'phone' && !isNumber(text) && <Pill tone="warn">{say.notNumber}</Pill>}
            </td>
          )
        })
      ) : (
        <td colSpan={columns.length}>
          <Pill tone="bad">{say.rejected}</Pill> {problem}
        </td>
      )}
    </tr>
  )
}
