import { SerializerSelector } from '@fastify/fast-json-stringify-compiler'

type BuildSerializer = ReturnType<typeof SerializerSelector>

const buildEager = SerializerSelector()

/** Builds the response serializers of all routes, for Fastify. */
export const buildSerializer: BuildSerializer = (sharedSchemas, options) => {
  const compile = buildEager(sharedSchemas, options)
  return (route) => {
    // Compiled with the first response. Most schemas are of errors that never occur, and compiling all took 0.45 s of every start.
    let serialize: ReturnType<typeof compile> | undefined
    return (data) => {
      serialize ??= compile(route)
      return serialize(data)
    }
  }
}
