import * as say from '../../words/en-templates.ts'

/** Where a part of the template is, for people: `/message/data/cards/0/title` is `Card 1: Title`. */
export function whereOf(path: string): string {
  const numbered = path.replace(/(card|button)s\/(\d+)/g, (_, part: 'card' | 'button', index: string) => say.parts[part](Number(index) + 1))
  const [, root = '', ...keys] = numbered.split('/')
  const names = keys.filter((key) => key !== 'data').map((key) => say.fields[key] ?? key)
  return names.join(': ') || (root === 'name' ? say.name : (say.fields[root] ?? path))
}
