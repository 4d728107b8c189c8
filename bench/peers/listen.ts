import type { AddressInfo, Server } from 'node:net'

/** Listens on a free port, and reports it to the process that started this one. */
export function listen(server: Server): void {
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
}
