import type { Logger } from 'pino'
import type { OnEvents, RcsCarrier, SmsCarrier } from './carrier.ts'
import { createGoogleRbm } from './google-rbm/carrier.ts'
import type { CarrierSettings } from './settings.ts'
import { createSmppCarrier } from './smpp/carrier.ts'

export type Carriers = {
  /** By the carrier's name, which agents refer to. */
  rcs: ReadonlyMap<string, RcsCarrier>
  sms: SmsCarrier | undefined
  close: () => Promise<void>
}

/** Connects to all networks in the background: an unreachable network delays neither the start nor the other networks. */
export function openCarriers(settings: CarrierSettings, options: { postbackKey: Buffer; onEvents: OnEvents; logger: Logger }): Carriers {
  const { postbackKey, onEvents, logger } = options
  const rcs = new Map(settings.rcs.map((carrier) => [carrier.name, createGoogleRbm(carrier, { postbackKey, logger })]))
  const sms = settings.sms && createSmppCarrier(settings.sms, { onEvents, logger })
  for (const carrier of rcs.values()) void carrier.connect()
  return {
    rcs,
    sms,
    close: async () => {
      await Promise.all([...rcs.values(), ...(sms === undefined ? [] : [sms])].map((carrier) => carrier.close()))
    },
  }
}
