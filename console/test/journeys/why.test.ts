import assert from 'node:assert/strict'
import { call } from '../../../server/test/support/service.ts'
import { until } from '../../../server/test/support/until.ts'
import { herald, newAccount, testJourney } from './shared.ts'

// Journey 5: why did a message fail, or fall back to SMS?

const TEXT = { type: 'MESSAGE', content: 'Your parcel is on its way.' }
/** The last two digits choose what a phone does: 02 has no RCS, and the network refuses messages to 03. */
const FELL_BACK = '+48500111202'
const FAILED = '+48500111203'

async function start() {
  const account = await newAccount()
  const smsFallback = { planParams: { sender: 'Greenhouse', smsShipmentType: 1 }, smsMessagesPlan: [{ content: 'It is on its way.' }] }
  await account.send(FELL_BACK, TEXT, { smsFallback })
  const failedId = await account.send(FAILED, TEXT)
  const { authorization } = account
  const statusOf = async () => (await call(`${herald.url}/v1/messages/${failedId}`, { authorization })).body.status
  await until('the message has failed', async () => (await statusOf()) === 'FAILED')
  return account
}

testJourney('says in the first sentence why a message fell back or failed, and explains each step', start, async (journey) => {
  const { t, page, person, way } = journey
  const open = async (recipient: string) => {
    const from = performance.now()
    await person.find(recipient)
    await person.press(page.getByRole('table').getByRole('link', { name: recipient.slice(-3) }))
    const outcome = page.getByRole('main').locator('.outcome')
    await outcome.waitFor()
    t.diagnostic(`the answer for ${recipient} with the ${way} after ${Math.round(performance.now() - from)} ms`)
    return outcome
  }
  const step = (title: string) => page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: title }) })
  /** Every step says why it happened. */
  const assertExplained = async () => {
    const steps = await page.locator('.tl-step').all()
    for (const each of steps) assert.match(await each.locator('.tl-body > p').innerText(), /\w{3}.*\.$/s, await each.innerText())
    return steps.length
  }
  await page.goto('/console')

  const fellBack = await open(FELL_BACK)
  await fellBack.getByText(/^The recipient got it by SMS after/).waitFor()
  assert.match(await fellBack.innerText(), /The number has no RCS; the SMS of the request went out .* later\.$/)
  assert.match(await step('Failed: the number has no RCS').innerText(), /What the network said\s+.*404 NOT_FOUND/s)
  await step('SMS delivered').waitFor()
  assert.ok((await page.getByRole('list', { name: 'The rules of the SMS' }).getByRole('listitem').count()) >= 8)
  assert.ok((await assertExplained()) >= 6)

  const failed = await open(FAILED)
  await failed.getByText('The recipient got nothing.').waitFor()
  assert.match(await failed.innerText(), /The network refused the message\. The request has no SMS to fall back to\.$/)
  assert.match(await step('Failed: the network refused the message').innerText(), /What the network said\s+.*400 FAILED_PRECONDITION/s)
  assert.ok((await assertExplained()) >= 2)
})
