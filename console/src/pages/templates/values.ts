import { fieldsOf, listOf } from '../../../../server/src/content/untrusted.ts'

// Reads and changes parts of an object by their paths. The object may have any form: a person may write it as JSON.

export type Path = (string | number)[]

export function valueAt(object: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, key) => fieldsOf(value)[key], object)
}

export function textAt(object: unknown, path: Path): string {
  const value = valueAt(object, path)
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

export const listAt = (object: unknown, path: Path) => listOf(valueAt(object, path))

/** A copy with another value at the path. Undefined removes the field. */
export function withValue(object: unknown, [key, ...rest]: Path, value: unknown): unknown {
  if (key === undefined) return value
  const next = withValue(valueAt(object, [key]), rest, value)
  if (typeof key === 'number') return listOf(object).toSpliced(key, 1, next)
  const { [key]: _, ...others } = fieldsOf(object)
  // The order of the fields stays the same, for the view as JSON.
  if (next === undefined) return others
  return key in fieldsOf(object) ? { ...fieldsOf(object), [key]: next } : { ...others, [key]: next }
}

/** The pointer to a part of the content, as the check has it. */
export const pointerTo = (path: Path) => ['/message', ...path].join('/')
