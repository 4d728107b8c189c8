const PREFIX = 'herald-draft-'

/** Keeps unsaved work in the tab while a person reloads it or looks at other pages. `name`: has the person, so that another one does not see it. */
export function keepDraft(name: string, value: unknown): void {
  try {
    sessionStorage.setItem(PREFIX + name, JSON.stringify(value))
  } catch {
    // The tab has no space for content this long.
    sessionStorage.removeItem(PREFIX + name)
  }
}

export function draftOf<T>(name: string): T | undefined {
  const text = sessionStorage.getItem(PREFIX + name)
  return text === null ? undefined : (JSON.parse(text) as T)
}

export const forgetDraft = (name: string) => sessionStorage.removeItem(PREFIX + name)

/** Other programs behind the same proxy may keep something, too. */
export function forgetAllDrafts(): void {
  for (const name of Object.keys(sessionStorage)) {
    if (name.startsWith(PREFIX)) sessionStorage.removeItem(name)
  }
}
