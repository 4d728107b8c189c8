import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { hasChanged } from '../audit/record.ts'
import { type Pool, transaction } from '../db/pool.ts'
import { errorResponses } from '../http/error-responses.ts'
import type { Simulator } from '../phones/simulator.ts'
import type { Simulators } from '../phones/simulators.ts'
import { NoQuery } from '../schemas.ts'
import { FaultsBody, NewFaults, PHONE_ERRORS, PHONES_TAG } from './phone-schemas.ts'

const tags = [PHONES_TAG.name]
const object = { additionalProperties: false }
const BODY_ERRORS = ['RCS_PAYLOAD_TOO_LARGE', 'RCS_UNSUPPORTED_MEDIA_TYPE'] as const
const CarrierPath = Type.Object({ carrier: Type.String() }, object)

/** The faults of the simulated network, for operators: they concern all accounts. */
export const faultRoutes: FastifyPluginAsyncTypebox<{ pool: Pool; simulators: Simulators }> = async (app, { pool, simulators }) => {
  /** Makes a change within the transaction of its entry. Returns the faults that the network has after it. */
  async function changeFaults(request: FastifyRequest, carrier: string, change: (simulator: Simulator) => Promise<unknown>) {
    const simulator = simulators.byName(carrier)
    const before = await simulator.readFaults()
    return await transaction(pool, async (tx) => {
      await change(simulator)
      const after = await simulator.readFaults()
      if (hasChanged({ before, after })) await request.recordChange?.(tx, after, before)
      return after as object
    })
  }
  const common = { tags, params: CarrierPath, querystring: NoQuery }
  const path = '/carriers/:carrier/faults'
  app.get(
    path,
    {
      schema: {
        ...common,
        operationId: 'readFaults',
        summary: 'Read the faults of the simulated network',
        response: { 200: FaultsBody, ...errorResponses(...PHONE_ERRORS) },
      },
      config: { role: 'operator' },
    },
    async (request) => (await simulators.byName(request.params.carrier).readFaults()) as object,
  )

  app.put(
    path,
    {
      schema: {
        ...common,
        operationId: 'setFaults',
        summary: 'Replace the faults of the simulated network',
        body: NewFaults,
        response: { 200: FaultsBody, ...errorResponses(...PHONE_ERRORS, ...BODY_ERRORS) },
      },
      config: { role: 'operator', audit: 'self' },
    },
    async (request) => await changeFaults(request, request.params.carrier, (simulator) => simulator.setFaults(request.body)),
  )

  app.delete(
    path,
    {
      schema: {
        ...common,
        operationId: 'clearFaults',
        summary: 'End the faults of the simulated network',
        response: { 204: Type.Null({ description: 'There are no faults.' }), ...errorResponses(...PHONE_ERRORS, ...BODY_ERRORS) },
      },
      config: { role: 'operator', audit: 'self' },
    },
    async (request, reply) => {
      await changeFaults(request, request.params.carrier, (simulator) => simulator.clearFaults())
      return await reply.code(204).send(null)
    },
  )
}
