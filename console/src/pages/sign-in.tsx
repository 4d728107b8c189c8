import { useState } from 'preact/hooks'
import { type ApiProblem, post, urlOf } from '../app/api.ts'
import { useResource } from '../app/resource.ts'
import { Button, ButtonLink, TextField } from '../kit/controls.tsx'
import { Problem } from '../kit/problem.tsx'
import * as say from '../words/en-sign-in.ts'

export function SignInPage({ onDone }: { onDone: () => void }) {
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const [problem, setProblem] = useState<ApiProblem>()
  const [isBusy, setBusy] = useState(false)
  const options = useResource<{ methods: string[]; isSetUp: boolean }>('/sign-in-options')
  const submit = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    setProblem(undefined)
    await post('/session', { email, password }).then(onDone, (error: unknown) => setProblem(error as ApiProblem))
    setBusy(false)
  }
  return (
    <main class="door">
      <h1>{say.signInTitle}</h1>
      <form class="card" onSubmit={(event) => void submit(event)}>
        <TextField label={say.email} type="email" autocomplete="username" required value={email} onInput={setEmail} />
        <TextField label={say.password} type="password" autocomplete="current-password" required value={password} onInput={setPassword} />
        {problem && <Problem problem={problem} />}
        <Button kind="primary" type="submit" isBusy={isBusy}>
          {say.signIn}
        </Button>
        {options.value?.methods.includes('oidc') && <ButtonLink href={urlOf('/oidc/start')}>{say.withOrganization}</ButtonLink>}
      </form>
      <p class="soft">{options.value?.isSetUp === false ? say.notSetUp : say.forgotten}</p>
    </main>
  )
}
