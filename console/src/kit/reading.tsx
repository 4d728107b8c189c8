import type { Resource } from '../app/resource.ts'
import { Loading } from './display.tsx'
import { Problem } from './problem.tsx'

type Props = { value: unknown; problem?: Resource<unknown>['problem']; isLoading?: boolean; reload: () => void }

/** Why something could not be read, or that it is being read for the first time. */
export function Reading({ value, problem, isLoading = true, reload }: Props) {
  return (
    <>
      {problem && <Problem problem={problem} onRetry={reload} />}
      {value === undefined && problem === undefined && isLoading && <Loading />}
    </>
  )
}
