import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { createTestDatabase, ownerOf } from '../support/database.ts'
import { startTestService } from '../support/service.ts'

test('a failed start leaves no connection to a network, which would keep the process alive', async () => {
  const { url, hotPool: pool } = await createTestDatabase()
  const connections: Socket[] = []
  const network = createServer((socket) => connections.push(socket.on('error', () => {})))
  await once(network.listen(0, '127.0.0.1'), 'listening')
  const { port } = network.address() as AddressInfo
  after(() => {
    for (const socket of connections) socket.destroy()
    network.close()
  })
  const sms = { name: 'smsc', host: '127.0.0.1', port, tls: false, systemId: 'herald', password: 'secret' }
  const starting = startTestService(
    { HERALD_DATABASE_URL: url },
    {
      roles: ['delivery'],
      findCarriers: async () => ({ rcs: [], sms }),
      beforeListening: async () => void (await ownerOf(pool).query(`alter table secrets add constraint gone check (name <> 'links')`)),
    },
  )
  await assert.rejects(starting, { code: '23514' })
  // Connections arrive in order: an earlier one would be there before this one.
  connect(port, '127.0.0.1').on('error', () => {})
  await once(network, 'connection')
  assert.equal(connections.length, 1)
})
