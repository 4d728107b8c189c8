import { useState } from 'preact/hooks'
import { ask, post } from '../../app/api.ts'
import { go } from '../../app/place.ts'
import { useRun } from '../../app/run.ts'
import { useFrame } from '../../app/session.tsx'
import { Button } from '../../kit/controls.tsx'
import { Problem } from '../../kit/problem.tsx'
import { Sure } from '../../kit/sure.tsx'
import { isAccepted } from '../../timeline/webhooks.ts'
import * as say from '../../words/en-webhooks.ts'
import { type Attempt, type ChangedEndpoint, type Endpoint, pathOf } from './endpoints.ts'
import { ReplayDialog } from './replay.tsx'
import { SecretDialog } from './secret.tsx'

type Open = 'replay' | 'rotate' | 'disable' | 'delete'

/** The actions for an endpoint. An action that loses something first says so, and asks. */
export function EndpointActions({ endpoint, onChanged }: { endpoint: Endpoint; onChanged: () => void }) {
  const { account } = useFrame()
  const { accountId } = account
  const [open, setOpen] = useState<Open>()
  const { run, isBusy, problem, said, setSaid } = useRun(onChanged)
  const [missedSince, setMissedSince] = useState<string>()
  const { endpointId, failed, failingSince, pending } = endpoint
  const path = pathOf(accountId, endpointId)
  const isActive = endpoint.status === 'ACTIVE'
  const close = () => setOpen(undefined)
  const test = () => run(async () => inWords(await post<Attempt>(`${path}/test`)))
  const setStatus = async (status: Endpoint['status']) => {
    const changed = await ask<ChangedEndpoint>(path, { method: 'PATCH', body: { status } })
    // Events that were recorded while it was disabled are posted only by a replay.
    setMissedSince((last) => last ?? changed.missedSince)
    if (changed.missedSince !== undefined) setOpen('replay')
    return say.nowIs[status]
  }
  const replayed = (text: string, isAll: boolean) => {
    setSaid(text)
    if (isAll) setMissedSince(undefined)
    close()
    onChanged()
  }
  const end = { disable: async () => setSaid(await setStatus('DISABLED')), delete: () => ask(path, { method: 'DELETE' }) }
  const ended = () => {
    close()
    if (open === 'delete') go({ accountId, path: ['webhooks'] })
    else onChanged()
  }
  return (
    <>
      <div class="actions">
        <Button icon="history" kind={failed || failingSince || missedSince ? 'primary' : 'plain'} onClick={() => setOpen('replay')}>
          {say.replay}
        </Button>
        <Button icon="send" isBusy={isBusy} disabled={!isActive} onClick={() => void test()}>
          {say.test}
        </Button>
        <Button icon="key-round" onClick={() => setOpen('rotate')}>
          {say.rotate}
        </Button>
        <Button icon="power" isBusy={isBusy} onClick={() => (isActive ? setOpen('disable') : void run(() => setStatus('ACTIVE')))}>
          {isActive ? say.ends.disable : say.enable}
        </Button>
        <Button icon="trash-2" kind="danger" onClick={() => setOpen('delete')}>
          {say.ends.delete}
        </Button>
      </div>
      <p class="said" role="status">
        {said}
      </p>
      {problem && <Problem problem={problem} />}
      {open === 'replay' && <ReplayDialog path={path} missedSince={missedSince} onClose={close} onReplayed={replayed} />}
      {open === 'rotate' && <RotateDialog path={path} onDone={onChanged} onClose={close} />}
      {(open === 'disable' || open === 'delete') && (
        <Sure title={say.ends[open]} action={say.ends[open]} run={end[open]} onDone={ended} onClose={close}>
          <p>{say.sure[open](pending)}</p>
        </Sure>
      )}
    </>
  )
}

function inWords(attempt: Attempt): string {
  const { status, error = '', durationMs } = attempt
  const result = status === undefined ? say.noResponse(error) : say.responded(status, durationMs)
  return isAccepted(attempt) ? say.testAccepted(result) : say.testFailed(result)
}

function RotateDialog({ path, onDone, onClose }: { path: string; onDone: () => void; onClose: () => void }) {
  const { withPassword } = useFrame()
  const [secret, setSecret] = useState<string>()
  const run = async () => setSecret((await withPassword(() => post<{ secret: string }>(`${path}/rotate`))).secret)
  if (secret !== undefined) return <SecretDialog title={say.rotated} secret={secret} onClose={onClose} />
  return (
    <Sure title={say.rotate} action={say.rotate} run={run} onDone={onDone} onClose={onClose}>
      <p>{say.rotateHint}</p>
    </Sure>
  )
}
