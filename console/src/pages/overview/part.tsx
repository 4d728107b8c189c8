import type { ComponentChildren } from 'preact'
import type { Resource } from '../../app/resource.ts'
import { AsCurl } from '../../kit/as-curl.tsx'
import { Loading } from '../../kit/display.tsx'
import { Problem } from '../../kit/problem.tsx'

type Props<T> = {
  title: ComponentChildren
  resource: Resource<T>
  /** Its path below /v1, for curl. */
  report?: string
  /** What can be done with the value, such as to save it. */
  action?: (value: T) => ComponentChildren
  children: (value: T) => ComponentChildren
}

/** A card that shows what it has read. If that can't be read, the card says why. What was read before stays below. */
export function Part<T>({ title, resource: { value, problem, reload }, report, action, children }: Props<T>) {
  return (
    <section class="card part">
      <div class="title-row">
        <h2>{title}</h2>
        <span class="spring" />
        {value !== undefined && action?.(value)}
        {report !== undefined && <AsCurl path={report} />}
      </div>
      {problem && <Problem problem={problem} onRetry={reload} />}
      {value === undefined && problem === undefined && <Loading />}
      {value !== undefined && children(value)}
    </section>
  )
}
