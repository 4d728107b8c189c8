import { type Caller, persist } from './caller.ts'
import type { Template, Templates } from './requests.ts'

/** What `startLoad` wants to send. No other account has these texts. */
export async function makeTemplates(caller: Caller): Promise<Templates> {
  async function make(name: string): Promise<Template> {
    const text = `${name}, of ${caller.agentId}.`
    const body = { name, status: 'APPROVED', message: { type: 'MESSAGE', content: text } }
    return { id: (await persist(caller, { method: 'POST', path: '/templates', body })).body.id, text }
  }
  return { plain: await make('Plain'), triggered: await make('Triggered') }
}
