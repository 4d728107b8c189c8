import { useState } from 'preact/hooks'
import { type ApiProblem, post } from '../app/api.ts'
import { useResource } from '../app/resource.ts'
import { Button, TextField } from '../kit/controls.tsx'
import { Loading } from '../kit/display.tsx'
import { Problem, problemAt } from '../kit/problem.tsx'
import * as say from '../words/en-sign-in.ts'

/** Sets a person's password by a one-time link. The link that Herald prints at its start also creates that person: the first operator. */
export function SetUpPage({ token, onDone }: { token: string; onDone: () => void }) {
  const [given, setGiven] = useState({ email: '', name: '', password: '' })
  const [problem, setProblem] = useState<ApiProblem>()
  const [isBusy, setBusy] = useState(false)
  const options = useResource<{ isSetUp: boolean }>('/sign-in-options')
  if (options.problem) {
    return (
      <main class="door">
        <h1>{say.setUpTitle}</h1>
        <Problem problem={options.problem} onRetry={options.reload} />
      </main>
    )
  }
  if (options.value === undefined) return <Loading />
  // Before there is an operator, other people may have links, too.
  const isFirst = !options.value.isSetUp && token.startsWith('first-')
  const set = (change: Partial<typeof given>) => setGiven({ ...given, ...change })
  const submit = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    setProblem(undefined)
    const { password } = given
    await post('/setup', { token, ...(isFirst ? given : { password }) }).then(onDone, (error: unknown) => setProblem(error as ApiProblem))
    setBusy(false)
  }
  return (
    <main class="door">
      <h1>{say.setUpTitle}</h1>
      <p>{isFirst ? say.first : say.again}</p>
      <form class="card" onSubmit={(event) => void submit(event)}>
        {isFirst && (
          <>
            <TextField label={say.yourName} autocomplete="name" required value={given.name} onInput={(name) => set({ name })} />
            <TextField
              label={say.email}
              type="email"
              autocomplete="username"
              required
              value={given.email}
              onInput={(email) => set({ email })}
              problem={problemAt(problem, '/email')}
            />
          </>
        )}
        <TextField
          label={say.password}
          type="password"
          autocomplete="new-password"
          required
          minLength={12}
          value={given.password}
          onInput={(password) => set({ password })}
          hint={say.passwordHint}
          problem={problemAt(problem, '/password')}
        />
        {problem && <Problem problem={problem} />}
        <Button kind="primary" type="submit" isBusy={isBusy}>
          {say.setPassword}
        </Button>
        {problem?.code === 'RCS_LINK_GONE' && <Button onClick={onDone}>{say.toSignIn}</Button>}
      </form>
    </main>
  )
}
