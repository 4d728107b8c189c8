import { useState } from 'preact/hooks'
import { post } from '../../app/api.ts'
import { useFrame } from '../../app/session.tsx'
import { TextField } from '../../kit/controls.tsx'
import { FormDialog } from '../../kit/form-dialog.tsx'
import * as say from '../../words/en-people.ts'

/** Asks for the present password, too: a page that somebody left open is no proof. */
export function ChangePassword({ onDone, onClose }: { onDone: () => void; onClose: () => void }) {
  const { session } = useFrame()
  const [given, setGiven] = useState({ currentPassword: '', newPassword: '' })
  return (
    <FormDialog title={say.changePassword} run={() => post('/session/password', given).then(onDone)} onClose={onClose}>
      {(wrongAt) => (
        <>
          {/* Password managers need the name that belongs to the password. */}
          <input type="hidden" autocomplete="username" value={session.email} />
          <TextField
            label={say.currentPassword}
            type="password"
            autocomplete="current-password"
            required
            value={given.currentPassword}
            onInput={(currentPassword) => setGiven({ ...given, currentPassword })}
          />
          <TextField
            label={say.newPassword}
            type="password"
            autocomplete="new-password"
            required
            minLength={12}
            value={given.newPassword}
            onInput={(newPassword) => setGiven({ ...given, newPassword })}
            hint={say.newPasswordHint}
            problem={wrongAt('/newPassword')}
          />
        </>
      )}
    </FormDialog>
  )
}
