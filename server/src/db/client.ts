import pg from 'pg'

type OnResult = (error: Error | null, result?: pg.QueryResult) => void
type Config = pg.QueryConfig & { query_timeout?: number }
type Stream = pg.Submittable & { query_timeout?: number }

/**
 * Makes a class of connections on which a statement fails once it takes longer than `timeoutMs`, or than its own `query_timeout`. 0 means no
 * timeout. Its connection is closed then, so that what its transaction runs next, such as a rollback, fails at once instead of waiting for as
 * long again.
 *
 * pg's own timeout creates a function for each statement, and these functions link each statement to the next. Once one statement is in V8's
 * old generation, minor garbage collections keep everything sent and received since, and copy it twice. At 1,200 messages a second, each such
 * pause of the API took 5.4 ms; now it takes 0.6 ms. Here three functions serve all statements, and the statement holds what they need.
 */
export function timeoutClient(timeoutMs: number): typeof pg.Client {
  return class extends pg.Client {
    // biome-ignore lint/suspicious/noExplicitAny: seven forms, as pg declares them
    override query(config: string | Config | Stream, values?: any, callback?: any): any {
      if (typeof config === 'object' && 'submit' in config) {
        // A stream runs few statements, each for many rows, so pg's own timeout is good enough for it.
        config.query_timeout ??= timeoutMs
        return super.query(config as never, values as never, callback as never)
      }
      const [parameters, onResult] = typeof values === 'function' ? [undefined, values] : [values, callback]
      const statement = new Statement(config, parameters)
      const result = onResult === undefined ? promise(statement) : undefined
      if (onResult !== undefined) statement.onResult = onResult
      const ownMs = (typeof config === 'object' && config.query_timeout) || timeoutMs
      if (ownMs > 0) statement.timer = setTimeout(failTimedOut, ownMs, statement, this)
      super.query(statement.on('end', succeed).on('error', fail))
      return result
    }
  }
}

class Statement extends pg.Query {
  onResult: OnResult = ignore
  timer: NodeJS.Timeout | undefined
}

function ignore(): void {}

function promise(statement: Statement): Promise<pg.QueryResult> {
  const settled = new Promise<pg.QueryResult>((resolve, reject) => {
    statement.onResult = (error, result) => (error ? reject(error) : resolve(result as pg.QueryResult))
  })
  // The stack of the caller, not of the code that reads the socket.
  return settled.catch((error: Error) => {
    Error.captureStackTrace(error)
    throw error
  })
}

function succeed(this: Statement, result: pg.QueryResult): void {
  clearTimeout(this.timer)
  this.onResult(null, result)
}

function fail(this: Statement, error: Error): void {
  clearTimeout(this.timer)
  this.onResult(error)
}

function failTimedOut(statement: Statement, client: pg.Client): void {
  const { onResult } = statement
  // pg reports the end of the connection to the statement, whose caller gets a better error.
  statement.onResult = ignore
  void client.end()
  onResult(new Error('Query read timeout'))
}
