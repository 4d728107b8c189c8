import { useMemo } from 'preact/hooks'
import { useAll } from './all.ts'

type Template = { id: number; name: string; status: 'DRAFT' | 'APPROVED' }

/** All templates of the account, by name. Undefined until they are read. */
export function useTemplates() {
  const { value, ...read } = useAll<Template>('templates')
  const templates = useMemo(() => value?.toSorted((a, b) => a.name.localeCompare(b.name)), [value])
  return { templates, ...read }
}
