import type { Cleanup } from '../cleanup.ts'
import { openWay } from '../crash/proxy.ts'
import { connectTo, DATABASE, type Place, USER } from './server.ts'

// The one address that Herald's nodes know, and that leads to whichever server is the primary: what HAProxy is in front of Patroni.

export type Address = {
  url: string
  /** All connections end, and no new one gets through: whoever was the primary is alone from now on. */
  close: () => void
  /** Nothing gets through, and nobody is told: a cable that is pulled. */
  blackHole: () => void
  openTo: (primary: Place) => Promise<void>
}

export async function openAddress(first: Place, cleanup: Cleanup): Promise<Address> {
  let primary = first
  const way = await openWay(() => connectTo(primary))
  cleanup.push(way.close)
  return {
    url: `postgres://${USER}@127.0.0.1:${way.port}/${DATABASE}`,
    close: () => way.begin('cut'),
    blackHole: () => way.begin('black-holed'),
    openTo: async (next) => {
      primary = next
      await way.mend()
    },
  }
}
