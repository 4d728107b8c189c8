import { useState } from 'preact/hooks'
import { Submit, TextField } from '../../kit/controls.tsx'
import { Dialog } from '../../kit/dialog.tsx'
import * as say from '../../words/en-phones.ts'
import type { Act } from './stage.tsx'

/** Warsaw: a place to begin with. */
const START = { latitude: '52.2297', longitude: '21.0122' }

export function ShareLocation({ act, onClose }: { act: Act; onClose: () => void }) {
  const [place, setPlace] = useState(START)
  const [latitude, longitude] = [numberIn(place.latitude, 90), numberIn(place.longitude, 180)]
  const submit = async () => {
    if (latitude === undefined || longitude === undefined) return
    onClose()
    await act('share-location', { latitude, longitude })
  }
  return (
    <Dialog title={say.sharePlace} onClose={onClose} onSubmit={submit} actions={<Submit text={say.share} />}>
      <TextField
        label={say.latitude}
        value={place.latitude}
        onInput={(value) => setPlace({ ...place, latitude: value })}
        problem={latitude === undefined ? say.degrees(90) : undefined}
      />
      <TextField
        label={say.longitude}
        value={place.longitude}
        onInput={(value) => setPlace({ ...place, longitude: value })}
        problem={longitude === undefined ? say.degrees(180) : undefined}
      />
    </Dialog>
  )
}

function numberIn(text: string, max: number): number | undefined {
  const value = Number(text.trim().replace(',', '.'))
  return text.trim() !== '' && Math.abs(value) <= max ? value : undefined
}
