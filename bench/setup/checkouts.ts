import { basename, dirname, join, resolve } from 'node:path'
import { commitOf } from '../measure/machine.ts'

// The checkouts whose programs are measured: this one, unless others are named.

export const THIS_CHECKOUT = dirname(dirname(import.meta.dirname))

/** `simulator`: the checkout of the network that the server sends through. `label`: empty if there is one server. */
export type Server = { checkout: string; simulator: string; label: string }

/** All servers use the network of this checkout, or of the one that `simulators` names; or each its own, if it names one for each. */
export function serversOf(checkouts: string[], simulators: string[]): Server[] {
  const named = checkouts.length === 0 ? [THIS_CHECKOUT] : checkouts.map((directory) => resolve(directory))
  if (simulators.length > 1 && simulators.length !== named.length) {
    throw new Error(`--simulator appears ${simulators.length} times: give it once, or once for each of the ${named.length} servers.`)
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
