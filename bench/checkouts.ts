import { basename, dirname, join, resolve } from 'node:path'
import { commitOf } from './machine.ts'

// The checkouts whose programs are measured. One of them is this one, where none is named.

export const THIS_CHECKOUT = dirname(import.meta.dirname)

/** A server to measure. `simulator`: the checkout of the network that it sends through. */
export type Server = { checkout: string; simulator: string; label: string }

/**
 * The network is this checkout's for all, so that it is the same for all; a network of another checkout for all where one is named, or of one
 * each where as many are named as servers.
 */
export function serversOf(checkouts: string[], simulators: string[]): Server[] {
  const named = checkouts.length === 0 ? [THIS_CHECKOUT] : checkouts.map((directory) => resolve(directory))
  if (simulators.length > 1 && simulators.length !== named.length) {
    throw new Error(`--simulator was given ${simulators.length} times: give it once, or once for each of the ${named.length} servers.`)
  }
  return named.map((checkout, index) => ({
    checkout,
    simulator: resolve(simulators[simulators.length > 1 ? index : 0] ?? THIS_CHECKOUT),
    label: named.length === 1 ? '' : `${basename(checkout)} ${commitOf(checkout)}`.trim(),
  }))
}

export function heraldOf(checkout: string): string {
  return join(checkout, 'server', 'bin', 'herald.js')
}

export function simulatorOf(checkout: string): string {
  return join(checkout, 'simulator', 'bin', 'herald-simulator.js')
}
