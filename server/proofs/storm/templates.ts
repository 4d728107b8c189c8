import { TEXT } from '../../test/support/templates.ts'
import { type Caller, persist } from './caller.ts'
import type { Templates } from './requests.ts'

/** What `startLoad` wants to send. */
export async function makeTemplates(caller: Caller): Promise<Templates> {
  async function make(name: string): Promise<number> {
    const body = { name, status: 'APPROVED', message: TEXT }
    return (await persist(caller, { method: 'POST', path: '/templates', body })).body.id
  }
  return { plain: await make('Plain'), triggered: await make('Triggered') }
}
