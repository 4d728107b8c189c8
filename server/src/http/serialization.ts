import { SerializerSelector } from '@fastify/fast-json-stringify-compiler'

type BuildSerializer = ReturnType<typeof SerializerSelector>

const buildEager = SerializerSelector()

/** Builds what writes the answers of every route, for Fastify. */
export const buildSerializer: BuildSerializer = (sharedSchemas, options) => {
  const compile = buildEager(sharedSchemas, options)
  return (route) => {
    // With the first answer: most are of errors that never come, and building all took 0.45 s of every start.
    let serialize: ReturnType<typeof compile> | undefined
    return (data) => {
      serialize ??= compile(route)
      return serialize(data)
    }
  }
}
