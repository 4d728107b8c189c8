import { assignAgent, changeAgent, createAgent } from '../../../server/src/agents/agents.ts'
import { herald } from './shared.ts'
import { at, button, dialog, heading, type State } from './state.ts'

let agents = 0
let making: ReturnType<typeof herald.newAccount> | undefined

/** An account for these states alone: other pages choose from the agents of theirs. */
async function accountOf(): Promise<number> {
  making ??= herald.newAccount()
  return (await making).accountId
}

async function newAgent({ isAssigned = true } = {}): Promise<string> {
  agents += 1
  const agentId = `parcels-and-letters-of-the-greenhouse@rbm.example/${agents}`
  const carrier = herald.simulator.rcs.name
  await createAgent(herald.pool, { agentId, name: 'parcels_and_letters_of_the_greenhouse', billingType: 'basic', carrier })
  if (isAssigned) await assignAgent(herald.pool, agentId, await accountOf())
  return agentId
}

const pageOf = async (agentId: string) => at(`agents/${encodeURIComponent(agentId)}`, await accountOf())

/** Opens the page of an agent, and a dialog by its button. */
const onAgent = (name: string, ofButton: string): State => ({
  name,
  open: async (page) => {
    await page.goto(await pageOf(await newAgent()))
    await button(page, ofButton).click()
    await dialog(page).waitFor()
  },
})

export const AGENTS: State[] = [
  {
    name: 'Agents of an account without any',
    open: async (page) => {
      await page.goto(at('agents?active=false'))
      await heading(page, 'No agent has this status').waitFor()
    },
  },
  {
    name: 'Agents',
    open: async (page) => {
      await newAgent()
      await page.goto(at('agents', await accountOf()))
      await page.getByRole('row').nth(1).getByRole('link').first().waitFor()
    },
  },
  {
    name: 'Agents of all accounts',
    open: async (page) => {
      await newAgent({ isAssigned: false })
      await page.goto(at('agents?all=true'))
      await page.getByRole('row').nth(2).waitFor()
    },
  },
  {
    name: 'Agents for a viewer',
    role: 'viewer',
    open: async (page) => {
      await page.goto(at('agents'))
      await page.getByRole('row').nth(1).getByRole('link').first().waitFor()
    },
  },
  {
    name: 'a new agent, refused',
    refused: 400,
    open: async (page) => {
      await page.goto(at('agents?new=true'))
      await dialog(page).getByLabel('Id', { exact: true }).fill('parcels')
      await dialog(page).getByLabel('Technical name').fill('parcels')
      await dialog(page).getByLabel('Carrier').fill('pigeons')
      await dialog(page).getByRole('button', { name: 'Register an agent' }).click()
      await dialog(page).getByText('must be one of').waitFor()
    },
  },
  {
    name: 'an agent',
    open: async (page) => {
      await page.goto(await pageOf(await newAgent()))
      await page.getByRole('region', { name: 'The agent' }).waitFor()
    },
  },
  {
    name: 'an agent that is inactive',
    open: async (page) => {
      const agentId = await newAgent()
      await changeAgent(herald.pool, await accountOf(), agentId, { active: false })
      await page.goto(await pageOf(agentId))
      await button(page, 'Activate again').waitFor()
    },
  },
  {
    name: 'an agent that is not assigned',
    open: async (page) => {
      await page.goto(await pageOf(await newAgent({ isAssigned: false })))
      await button(page, 'Assign to this account').waitFor()
    },
  },
  onAgent('an agent, its display name', 'Change the display name'),
  onAgent('an agent, unassigning it', 'Unassign'),
  {
    name: 'an agent, deactivating it while a message waits',
    open: async (page) => {
      await herald.simulator.ask('faults', { api: { serverError: { rate: 1 } } }, 'PUT')
      await herald.send('+48511222511', { type: 'MESSAGE', content: 'Hello' })
      await page.goto(at(`agents/${herald.agentId}`))
      await button(page, 'Deactivate').click()
      await dialog(page)
        .getByText(/queued messages? fails?/)
        .waitFor()
      await herald.simulator.ask('faults', undefined, 'DELETE')
    },
  },
  {
    name: 'an agent that does not exist',
    refused: 404,
    open: async (page) => {
      await page.goto(at('agents/nobody'))
      await page.getByRole('alert').waitFor()
    },
  },
]
