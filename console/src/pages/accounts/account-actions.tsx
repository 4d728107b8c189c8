import { useState } from 'preact/hooks'
import { ask, post } from '../../app/api.ts'
import { linkTo } from '../../app/place.ts'
import { useRun } from '../../app/run.ts'
import { useFrame } from '../../app/session.tsx'
import { Button, ButtonLink } from '../../kit/controls.tsx'
import { Problem } from '../../kit/problem.tsx'
import { Sure } from '../../kit/sure.tsx'
import * as say from '../../words/en-accounts.ts'
import { AccountDialog } from './account-dialog.tsx'
import type { Account, Quotas, Waiting } from './accounts-types.ts'
import { QuotasDialog } from './quotas-dialog.tsx'

type Props = { account: Account; quotas: Quotas | undefined; onChanged: () => void }

/** What an operator can do with an account. A suspension says what it stops, and asks. */
export function AccountActions({ account, quotas, onChanged }: Props) {
  const { account: here, accountsChanged } = useFrame()
  const { accountId } = account
  const [open, setOpen] = useState<'change' | 'quotas' | Waiting>()
  const { problem, said, setSaid, ...running } = useRun(onChanged)
  const close = () => setOpen(undefined)
  const done = (text: string) => {
    close()
    setSaid(text)
    onChanged()
    void accountsChanged()
  }
  return (
    <>
      <div class="actions">
        {accountId !== here.accountId && (
          <ButtonLink kind="primary" icon="arrow-right" href={linkTo({ accountId, path: [] })}>
            {say.switchHere}
          </ButtonLink>
        )}
        <Button icon="pencil" onClick={() => setOpen('change')}>
          {say.change}
        </Button>
        <Button icon="pencil" disabled={quotas === undefined} onClick={() => setOpen('quotas')}>
          {say.changeQuotas}
        </Button>
        <Suspension account={account} {...running} onAsk={setOpen} />
      </div>
      <p class="said" role="status">
        {said}
      </p>
      {problem && <Problem problem={problem} />}
      {open === 'change' && <AccountDialog account={account} onDone={() => done(say.saved)} onClose={close} />}
      {open === 'quotas' && quotas && <QuotasDialog accountId={accountId} quotas={quotas} onDone={() => done(say.saved)} onClose={close} />}
      {typeof open === 'object' && (
        <Sure
          title={say.suspendTitle(account.name)}
          action={say.suspend}
          run={() => post(`/accounts/${accountId}/suspend`)}
          onDone={() => done(say.isSuspended)}
          onClose={close}
        >
          <p>{say.suspendSure(open.messages, open.sms, open.campaigns)}</p>
          <p class="hint">{say.suspendKept}</p>
        </Sure>
      )}
    </>
  )
}

type SuspensionProps = { account: Account; onAsk: (waiting: Waiting) => void } & Pick<ReturnType<typeof useRun>, 'run' | 'isBusy'>

/** Suspends the account, after a question, or resumes it. */
function Suspension({ account: { accountId, suspendedAt }, run, isBusy, onAsk }: SuspensionProps) {
  const { accountsChanged } = useFrame()
  const askToSuspend = async () => {
    onAsk(await ask<Waiting>(`/accounts/${accountId}/waiting`))
    return ''
  }
  const resume = async () => {
    await post(`/accounts/${accountId}/resume`)
    void accountsChanged()
    return say.isResumed
  }
  return suspendedAt === undefined ? (
    <Button icon="pause" kind="danger" isBusy={isBusy} onClick={() => void run(askToSuspend)}>
      {say.suspend}
    </Button>
  ) : (
    <Button icon="play" isBusy={isBusy} onClick={() => void run(resume)}>
      {say.resume}
    </Button>
  )
}
