import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { type Pace, useFresh } from '../app/fresh.ts'
import type { LiveEvent } from '../app/live.ts'
import { type Page, useCursors, withCursor } from '../app/pages-of.ts'
import { useResource } from '../app/resource.ts'
import { Loading } from './display.tsx'
import { useKeptFocus } from './kept-focus.ts'
import { Problem } from './problem.tsx'
import './table.css'

/** `isWide`: narrow pages have no room for the column. */
type Column = { title: string; isNumber?: boolean; isWide?: boolean }

type Props<Item> = {
  label: string
  /** The list of the admin API, with its filters and its order. */
  path: string
  columns: Column[]
  /** The cells of an item, as `td`. A link with the class `row-link` reacts to clicks anywhere in the row. */
  cells: (item: Item) => ComponentChildren
  keyOf: (item: Item) => string
  /** What stands instead of the table if the list has nothing. */
  empty: ComponentChildren
  /** When the pages that a person sees are read again. */
  fresh?: Pace & { isAbout?: (event: LiveEvent) => boolean }
  /** Another value reads again what is shown, such as after a change. */
  version?: number
  /** Called with each page that was read. */
  onPage?: (items: Item[]) => void
}

const PAGE_SIZE = 50
const ROW_PX = 48
/** How often a list is read again by default. Most lists change without an event. */
const REST_MS = 15_000

/**
 * A list of any length. Only the pages near the window are read and drawn: the others are an empty space of the same height. So a person
 * scrolls through a million rows, and the browser has some hundred of them.
 */
export function LongTable<Item>(props: Props<Item>) {
  return <Pages key={props.path} {...props} />
}

function Pages<Item>({ label, columns, empty, ...rest }: Props<Item>) {
  const { cursors, note } = useCursors()
  const [isEmpty, setEmpty] = useState(false)
  const onRead = (index: number, page: Page<Item>) => {
    note(index, page.nextCursor)
    if (index === 0) setEmpty(page.items.length === 0 && page.nextCursor === null)
    rest.onPage?.(page.items)
  }
  const width = columns.length
  return (
    <>
      {isEmpty && <div class="card">{empty}</div>}
      <TableCard label={label} columns={columns} isHidden={isEmpty}>
        {cursors.map((cursor, index) => (
          <Rows key={index} {...rest} cursor={cursor} isHidden={isEmpty} width={width} onRead={(page) => onRead(index, page)} />
        ))}
      </TableCard>
    </>
  )
}

type CardProps = { label: string; columns: Column[]; isHidden?: boolean; children: ComponentChildren }

/** A table with the names of its columns. */
export function TableCard({ label, columns, isHidden = false, children }: CardProps) {
  return (
    <section class="card table-card" hidden={isHidden}>
      <table class="long-table" aria-label={label}>
        <thead>
          <tr>
            {columns.map(({ title, isNumber, isWide }) => (
              <th scope="col" class={`${isNumber ? 'num' : ''} ${isWide ? 'is-wide' : ''}`}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        {children}
      </table>
    </section>
  )
}

type RowsProps<Item> = Omit<Props<Item>, 'label' | 'columns' | 'empty'> & {
  cursor: string | undefined
  /** The table is not drawn, since it has no row yet. */
  isHidden: boolean
  width: number
  onRead: (page: Page<Item>) => void
}

/** A page of the list, as long as it is near the window. */
function Rows<Item>({ path, cursor, isHidden, width, cells, keyOf, fresh, version = 0, onRead }: RowsProps<Item>) {
  const body = useKeptFocus<HTMLTableSectionElement>()
  const heightPx = useRef(PAGE_SIZE * ROW_PX)
  // A hidden table is never near the window, but its first row may still arrive.
  const isNear = useNear(body) || isHidden
  const { value, problem, reload } = useResource<Page<Item>>(isNear ? withCursor(path, cursor, PAGE_SIZE) : undefined)
  // A row that is added before changes the cursor: the rows stay until those of the new cursor arrive.
  const shown = useRef<Page<Item> | undefined>(undefined)
  shown.current = isNear ? (value ?? shown.current) : undefined
  useFresh(reload, { restMs: REST_MS, isAbout: () => false, ...fresh })
  const last = useRef(version)
  useEffect(() => {
    if (last.current !== version) reload()
    last.current = version
  }, [version, reload])
  useEffect(() => {
    if (value !== undefined) onRead(value)
  }, [value])
  useLayoutEffect(() => {
    if (shown.current !== undefined) heightPx.current = body.current?.offsetHeight ?? heightPx.current
  })
  return (
    <tbody ref={body} tabIndex={-1}>
      {shown.current?.items.map((item) => (
        <tr key={keyOf(item)}>{cells(item)}</tr>
      ))}
      {shown.current === undefined && (
        <tr class="table-gap">
          <td colSpan={width} style={{ height: cursor === undefined ? 'auto' : `${heightPx.current}px` }}>
            {problem === undefined ? isNear && <Loading /> : <Problem problem={problem} onRetry={reload} />}
          </td>
        </tr>
      )}
      {shown.current !== undefined && problem !== undefined && (
        <tr class="table-gap">
          <td colSpan={width}>
            <Problem problem={problem} onRetry={reload} />
          </td>
        </tr>
      )}
    </tbody>
  )
}

/** About three windows above and below. */
const NEAR = '2000px 0px'

export function useNear(element: RefObject<Element | null>): boolean {
  const [isNear, setNear] = useState(false)
  useEffect(() => {
    // A busy browser reports several changes at once. The last one is current.
    const observer = new IntersectionObserver((changes) => setNear(changes.at(-1)?.isIntersecting === true), { rootMargin: NEAR })
    if (element.current !== null) observer.observe(element.current)
    return () => observer.disconnect()
  }, [element])
  return isNear
}
