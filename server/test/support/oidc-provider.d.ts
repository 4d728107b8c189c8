// The package has no types of its own. Only what the tests use.
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  class Provider {
    constructor(issuer: string, configuration: object)
    Grant: new (
      properties: object,
    ) => { addOIDCScope: (scope: string) => void; save: () => Promise<string> }
    callback(): (request: IncomingMessage, response: ServerResponse) => void
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object, options?: object): Promise<void>
  }
  export = Provider
}
