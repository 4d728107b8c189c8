import { randomBytes } from 'node:crypto'
import { after } from 'node:test'
import pg from 'pg'

/** Creates a role that may log in, such as a member of `herald_service`. It is dropped after the databases of the test file. */
export async function createLogin(options = ''): Promise<string> {
  const role = `herald_test_${randomBytes(8).toString('hex')}`
  await run(`create role ${role} login ${options}`)
  after(() => run(`drop role ${role}`))
  return role
}

async function run(statement: string): Promise<void> {
  const client = new pg.Client(process.env.HERALD_TEST_DATABASE_URL)
  await client.connect()
  await client.query(statement)
  await client.end()
}

/** The address of a database for another user. */
export function as(user: string, databaseUrl: string): string {
  const address = new URL(databaseUrl)
  address.username = user
  address.password = ''
  return address.href
}
