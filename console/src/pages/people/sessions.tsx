import { useState } from 'preact/hooks'
import { type ApiProblem, ask, askAll } from '../../app/api.ts'
import { useRun } from '../../app/run.ts'
import { useFrame } from '../../app/session.tsx'
import { Button } from '../../kit/controls.tsx'
import { Ago, Empty, Pill } from '../../kit/display.tsx'
import { LongTable } from '../../kit/long-table.tsx'
import { Problem } from '../../kit/problem.tsx'
import { Sure } from '../../kit/sure.tsx'
import * as say from '../../words/en-sessions.ts'
import { browserOf } from './browser-of.ts'

type ListedSession = { sessionId: string; lastUsedAt: string; address: string; userAgent: string }

type Props = {
  /** Where the API lists them. */
  path: string
  /** They are those of the person who looks at them. */
  isOwn: boolean
  /** Changes after what may end some. */
  turn: number
}

/** The open sessions of a person. */
export function Sessions({ path, isOwn, turn }: Props) {
  const { session, withPassword } = useFrame()
  const [version, setVersion] = useState(0)
  const [isAsking, setAsking] = useState(false)
  const look = () => setVersion((last) => last + 1)
  const { run, isBusy, problem, said, setSaid } = useRun(look)
  const end = async (ids: string[]) => {
    for (const id of ids) await withPassword(() => ask(`${path}/${id}`, { method: 'DELETE' })).catch(ignoreGone)
    return say.ended(ids.length)
  }
  const endAll = async () => {
    const ids = (await askAll<ListedSession>(path)).map(({ sessionId }) => sessionId)
    setSaid(await end(ids.filter((id) => id !== session.sessionId)))
  }
  const title = isOwn ? say.endOthers : say.endAll
  const closeAndLook = () => {
    setAsking(false)
    look()
  }
  return (
    <section class="person-sessions" aria-label={say.title}>
      <header>
        <h2>{say.title}</h2>
        <Button icon="log-out" onClick={() => setAsking(true)}>
          {title}
        </Button>
      </header>
      <p class="said" role="status">
        {said}
      </p>
      {problem && <Problem problem={problem} />}
      <LongTable<ListedSession>
        label={say.title}
        path={path}
        columns={[{ title: say.browserTitle }, { title: say.used }, { title: say.action, isNumber: true }]}
        keyOf={({ sessionId }) => sessionId}
        cells={(each) => <Cells session={each} isBusy={isBusy} onEnd={() => void run(() => end([each.sessionId]))} />}
        version={version + turn}
        empty={<Empty icon="log-out" title={say.none} />}
      />
      {isAsking && (
        <Sure title={title} action={title} run={endAll} onDone={closeAndLook} onClose={() => setAsking(false)}>
          <p>{isOwn ? say.sureOthers : say.sure}</p>
        </Sure>
      )}
    </section>
  )
}

/** A session that has ended by itself meanwhile is no error. */
function ignoreGone(error: ApiProblem): void {
  if (error.code !== 'RCS_SESSION_NOT_FOUND') throw error
}

type CellsProps = { session: ListedSession; isBusy: boolean; onEnd: () => void }

function Cells({ session: { sessionId, lastUsedAt, address, userAgent }, isBusy, onEnd }: CellsProps) {
  const { session } = useFrame()
  const browser = browserOf(userAgent)
  return (
    <>
      <td>
        <span title={userAgent}>{browser}</span> {sessionId === session.sessionId && <Pill tone="info">{say.thisOne}</Pill>}
        <small>{address}</small>
      </td>
      <td class="when">
        <Ago at={lastUsedAt} />
      </td>
      <td class="num">
        {/* A person ends the present session by signing out. */}
        {sessionId !== session.sessionId && (
          <Button isBusy={isBusy} aria-label={say.endOf(browser)} onClick={onEnd}>
            {say.end}
          </Button>
        )}
      </td>
    </>
  )
}
