import { useRef, useState } from 'preact/hooks'
import { Icon } from '../../../kit/icon.tsx'
import * as say from '../../../words/en-import.ts'
import { type Chosen, readFile } from './read-file.ts'

/** The first step: a file from the disk, or dropped on the field, which covers the zone. */
export function ChooseFile({ onChosen }: { onChosen: (chosen: Chosen) => void }) {
  const [problem, setProblem] = useState<string>()
  const latest = useRef<File>(undefined)
  const take = async (file: File | undefined) => {
    if (file === undefined) return
    latest.current = file
    setProblem(undefined)
    const found = await readFile(file)
    // The person may have chosen another file meanwhile.
    if (latest.current !== file) return
    if (typeof found === 'string') setProblem(found)
    else onChosen(found)
  }
  return (
    <div class="card import-part">
      <label class="drop-zone">
        <Icon name="upload" size={26} />
        <b>{say.choose}</b>
        <span>{say.drop}</span>
        <input
          type="file"
          accept=".csv,.tsv,.txt"
          aria-label={say.choose}
          onChange={(event) => {
            void take(event.currentTarget.files?.[0])
            // The same file can be chosen again after it was corrected.
            event.currentTarget.value = ''
          }}
        />
      </label>
      {problem && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <p class="hint">{say.hint}</p>
    </div>
  )
}
