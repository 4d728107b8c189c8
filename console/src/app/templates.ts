import { useMemo } from 'preact/hooks'
import { useAll } from './all.ts'

export type ListedTemplate = { id: number; name: string; status: 'DRAFT' | 'APPROVED'; message: unknown }

/** All templates of the account, by name. They are read as soon as they are needed, and undefined until then. */
export function useTemplates(isNeeded = true) {
  const { value, ...read } = useAll<ListedTemplate>('templates', isNeeded)
  const templates = useMemo(() => value?.toSorted((a, b) => a.name.localeCompare(b.name)), [value])
  return { templates, ...read }
}
