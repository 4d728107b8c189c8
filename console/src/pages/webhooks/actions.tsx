import { useState } from 'preact/hooks'
import { type ApiProblem, ask, post } from '../../app/api.ts'
import { go } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { Button, Submit } from '../../kit/controls.tsx'
import { Dialog } from '../../kit/dialog.tsx'
import { Problem } from '../../kit/problem.tsx'
import { isAccepted } from '../../timeline/webhooks.ts'
import { words } from '../../words/words.ts'
import { type Attempt, type ChangedEndpoint, type Endpoint, pathOf } from './endpoints.ts'
import { ReplayDialog } from './replay.tsx'
import { SecretDialog } from './secret.tsx'

type Open = 'replay' | 'rotate' | 'disable' | 'delete'

/** The actions for an endpoint. An action that loses something first says so, and asks. */
export function EndpointActions({ endpoint, onChanged }: { endpoint: Endpoint; onChanged: () => void }) {
  const { account, withPassword } = useFrame()
  const [open, setOpen] = useState<Open>()
  const { run, isBusy, problem, said, setSaid } = useRun(onChanged)
  const [missedSince, setMissedSince] = useState<string>()
  const path = (more = '') => pathOf(account.accountId, endpoint.endpointId, more)
  const test = () => run(async () => inWords(await post<Attempt>(path('/test'))))
  const setStatus = (status: Endpoint['status']) =>
    run(async () => {
      const changed = await ask<ChangedEndpoint>(path(), { method: 'PATCH', body: { status } })
      // Events that were recorded while it was disabled are posted only by a replay.
      setMissedSince((last) => last ?? changed.missedSince)
      if (changed.missedSince !== undefined) setOpen('replay')
      return words.webhooks.nowIs[status]
    })
  const replayed = (text: string, which: 'failed' | 'all') => {
    setSaid(text)
    if (which === 'all') setMissedSince(undefined)
  }
  const remove = () =>
    run(async () => {
      await ask(path(), { method: 'DELETE' })
      go({ accountId: account.accountId, path: ['webhooks'] })
      return ''
    })
  const isActive = endpoint.status === 'ACTIVE'
  return (
    <>
      <div class="actions">
        <Button
          icon="history"
          kind={endpoint.failed > 0 || endpoint.failingSince !== undefined || missedSince !== undefined ? 'primary' : 'plain'}
          onClick={() => setOpen('replay')}
        >
          {words.webhooks.replay}
        </Button>
        <Button icon="send" isBusy={isBusy} disabled={!isActive} onClick={() => void test()}>
          {words.webhooks.test}
        </Button>
        <Button icon="key-round" onClick={() => setOpen('rotate')}>
          {words.webhooks.rotate}
        </Button>
        <Button icon="power" isBusy={isBusy} onClick={() => (isActive ? setOpen('disable') : void setStatus('ACTIVE'))}>
          {isActive ? words.webhooks.disable : words.webhooks.enable}
        </Button>
        <Button icon="trash-2" kind="danger" onClick={() => setOpen('delete')}>
          {words.webhooks.delete}
        </Button>
      </div>
      <p class="said" role="status">
        {said}
      </p>
      {problem && <Problem problem={problem} />}
      {open === 'replay' && (
        <ReplayDialog
          endpoint={endpoint}
          missedSince={missedSince}
          onClose={() => setOpen(undefined)}
          onReplayed={replayed}
          onChanged={onChanged}
        />
      )}
      {open === 'rotate' && (
        <RotateDialog rotate={() => withPassword(() => post<{ secret: string }>(path('/rotate')))} onClose={() => setOpen(undefined)} />
      )}
      {(open === 'disable' || open === 'delete') && (
        <Sure
          title={words.webhooks[open]}
          text={words.webhooks.sure[open](endpoint.pending)}
          onYes={() => void (open === 'disable' ? setStatus('DISABLED') : remove())}
          onClose={() => setOpen(undefined)}
        />
      )}
    </>
  )
}

/** Runs a request, which returns what to say when it has succeeded. */
function useRun(onChanged: () => void) {
  const [problem, setProblem] = useState<ApiProblem>()
  const [said, setSaid] = useState('')
  const [isBusy, setBusy] = useState(false)
  const run = async (request: () => Promise<string>) => {
    setBusy(true)
    setProblem(undefined)
    setSaid('')
    await request().then(setSaid, (error: ApiProblem) => setProblem(error))
    setBusy(false)
    onChanged()
  }
  return { run, isBusy, problem, said, setSaid }
}

function inWords(attempt: Attempt): string {
  const result =
    attempt.status === undefined
      ? words.webhooks.noResponse(attempt.error ?? '')
      : words.webhooks.responded(attempt.status, attempt.durationMs)
  return isAccepted(attempt) ? words.webhooks.testAccepted(result) : words.webhooks.testFailed(result)
}

function Sure({ title, text, onYes, onClose }: { title: string; text: string; onYes: () => void; onClose: () => void }) {
  const yes = () => {
    onClose()
    onYes()
  }
  const actions = (
    <Button kind="danger" onClick={yes}>
      {title}
    </Button>
  )
  return (
    <Dialog title={title} onClose={onClose} actions={actions}>
      <p>{text}</p>
    </Dialog>
  )
}

function RotateDialog({ rotate, onClose }: { rotate: () => Promise<{ secret: string }>; onClose: () => void }) {
  const [secret, setSecret] = useState<string>()
  const [problem, setProblem] = useState<ApiProblem>()
  const run = () =>
    rotate().then(
      (rotated) => setSecret(rotated.secret),
      (error: ApiProblem) => setProblem(error),
    )
  if (secret !== undefined) return <SecretDialog title={words.webhooks.rotated} secret={secret} onClose={onClose} />
  return (
    <Dialog title={words.webhooks.rotate} onClose={onClose} onSubmit={run} actions={<Submit text={words.webhooks.rotate} />}>
      <p>{words.webhooks.rotateHint}</p>
      {problem && <Problem problem={problem} />}
    </Dialog>
  )
}
