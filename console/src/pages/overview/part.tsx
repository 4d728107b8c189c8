import type { ComponentChildren } from 'preact'
import type { Resource } from '../../app/resource.ts'
import { AsCurl } from '../../kit/as-curl.tsx'
import { Loading } from '../../kit/display.tsx'
import { Problem } from '../../kit/problem.tsx'

type Props<T> = { title: string; resource: Resource<T>; report?: string; children: (value: T) => ComponentChildren }

/** A card of the overview. If it can't be read, it says why. What was read before stays below. `report`: its path below /v1, for curl. */
export function Part<T>({ title, resource: { value, problem, reload }, report, children }: Props<T>) {
  return (
    <section class="card part">
      <div class="title-row">
        <h2>{title}</h2>
        {report !== undefined && <AsCurl path={report} />}
      </div>
      {problem && <Problem problem={problem} onRetry={reload} />}
      {value === undefined && problem === undefined && <Loading />}
      {value !== undefined && children(value)}
    </section>
  )
}
