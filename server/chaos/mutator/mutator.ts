import assert from 'node:assert/strict'
import type { History } from '../history/history.ts'

// Changes one record of a history: drops it, duplicates it, or edits it. Lists and fields are given by their path, such as 'processes.lines'.

export type Mutation = { what: string; apply: (history: History) => void }

/** A value, or a function of the old value, the record and the history. */
type Value = unknown | ((old: any, record: any, history: History) => unknown)
/** Fields and the values that they must have, or a condition. */
export type Where = Record<string, unknown> | ((record: any, history: History) => unknown)
export type Edits = Record<string, Value>

function at(value: any, path: string): any {
  return path.split('.').reduce((inner, name) => inner?.[name], value)
}

function put(record: any, path: string, value: unknown): void {
  const names = path.split('.')
  const last = names.pop() as string
  names.reduce((inner, name) => inner[name], record)[last] = value
}

function find(history: History, path: string, where: Where): { list: any[]; index: number } {
  const list = at(history, path) as any[]
  const matches = (record: any) =>
    typeof where === 'function' ? where(record, history) : Object.entries(where).every(([field, value]) => at(record, field) === value)
  const index = list.findIndex(matches)
  assert.ok(index >= 0, `${path} has no record with ${describe(where)}`)
  return { list, index }
}

function apply(record: any, edits: Edits, history: History): any {
  for (const [path, value] of Object.entries(edits))
    put(record, path, typeof value === 'function' ? value(at(record, path), record, history) : value)
  return record
}

const describe = (what: Where | Edits) =>
  typeof what === 'function' ? String(what) : JSON.stringify(what, (_, value) => value?.name ?? value)

/** A value that is computed from the history. */
export const from = (read: (history: History) => unknown) => (_: unknown, __: unknown, history: History) => read(history)

export function drop(path: string, where: Where = {}): Mutation {
  return {
    what: `drop one of ${path} with ${describe(where)}`,
    apply: (history) => {
      const { list, index } = find(history, path, where)
      list.splice(index, 1)
    },
  }
}

/** Appends a copy with these edits. */
export function duplicate(path: string, where: Where = {}, edits: Edits = {}): Mutation {
  return {
    what: `duplicate one of ${path} with ${describe(where)} as ${describe(edits)}`,
    apply: (history) => {
      const { list, index } = find(history, path, where)
      list.push(apply(structuredClone(list[index]), edits, history))
    },
  }
}

export function edit(path: string, where: Where, edits: Edits): Mutation {
  return {
    what: `edit one of ${path} with ${describe(where)} to ${describe(edits)}`,
    apply: (history) => {
      const { list, index } = find(history, path, where)
      apply(list[index], edits, history)
    },
  }
}

/** Appends a record that no run has. */
export function add(path: string, record: unknown): Mutation {
  return { what: `add ${JSON.stringify(record)} to ${path}`, apply: (history) => void at(history, path).push(record) }
}

export function set(path: string, value: Value): Mutation {
  return { what: `set ${path} to ${describe({ value })}`, apply: (history) => void apply(history, { [path]: value }, history) }
}

export function all(what: string, ...mutations: Mutation[]): Mutation {
  return {
    what,
    apply: (history) => {
      for (const mutation of mutations) mutation.apply(history)
    },
  }
}
