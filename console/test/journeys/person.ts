import assert from 'node:assert/strict'
import type { Locator, Page } from 'playwright-core'

// A person who uses a page with the mouse, or by the keyboard alone.

export const WAYS = ['mouse', 'keyboard'] as const
export type Way = (typeof WAYS)[number]

export type Person = {
  /** Follows a link, presses a button, opens details, or switches a checkbox. */
  press: (target: Locator) => Promise<void>
  /** Replaces the text of a field. */
  write: (field: Locator, text: string) => Promise<void>
  /** Finds the messages to a number: with the search field, or with Ctrl-K. */
  find: (recipient: string) => Promise<void>
  /** How many times the person has clicked, or pressed Enter or Space. */
  presses: () => number
}

/** More stops than any page of the journeys has. */
const MAX_TABS = 80

export function personAt(page: Page, way: Way): Person {
  return way === 'mouse' ? withMouse(page) : withKeyboard(page)
}

function withMouse(page: Page): Person {
  let presses = 0
  const press = async (target: Locator) => {
    presses += 1
    await target.click()
  }
  const write = async (field: Locator, text: string) => {
    await field.click({ clickCount: 3 })
    await page.keyboard.type(text)
  }
  const find = async (recipient: string) => {
    await press(page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Messages' }))
    await write(page.getByLabel('Search'), recipient)
    await press(page.getByRole('button', { name: 'Find', exact: true }))
  }
  return { press, write, find, presses: () => presses }
}

/** What is wrong with the focus: nothing is focused, or a person would not see where it is. */
const FOCUS_PROBLEM = `(() => {
  const element = document.activeElement
  if (element === null || element === document.body) return 'nothing has the focus'
  // A hidden radio button shows the focus on the text beside it, a hidden list on its label.
  const shown = [element, element.nextElementSibling, element.closest('label')].filter(Boolean)
  const hasOutline = shown.some((each) => {
    const { outlineStyle, outlineWidth, opacity } = getComputedStyle(each)
    return outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1 && opacity !== '0'
  })
  const name = element.outerHTML.slice(0, 120)
  if (!hasOutline) return 'the focus can not be seen on ' + name
  const { top, bottom, left, right } = element.getBoundingClientRect()
  return bottom <= 0 || right <= 0 || top >= innerHeight || left >= innerWidth ? 'the focus is outside the window on ' + name : ''
})()`

function withKeyboard(page: Page): Person {
  let presses = 0
  // The browser has just loaded the page, so nothing has the focus.
  let isFresh = true
  const enter = async (key: 'Enter' | 'Space') => {
    presses += 1
    await page.keyboard.press(key)
  }
  const press = async (target: Locator) => {
    await reach(page, target, isFresh)
    isFresh = false
    await enter((await target.getAttribute('type')) === 'checkbox' ? 'Space' : 'Enter')
  }
  const write = async (field: Locator, text: string) => {
    await reach(page, field, isFresh)
    isFresh = false
    // Tab selects the text of a field, so typing replaces it.
    await page.keyboard.type(text)
  }
  const find = async (recipient: string) => {
    // When the stream is live, the page already listens for keys.
    await page.getByText('live', { exact: true }).first().waitFor()
    await page.keyboard.press('Control+k')
    await page.keyboard.type(recipient)
    await page.getByRole('option', { name: `Messages to ${recipient}`, selected: true }).waitFor()
    await enter('Enter')
    isFresh = false
  }
  return { press, write, find, presses: () => presses }
}

/** Presses Tab, or Shift and Tab, until the target has the focus. Fails if the focus is lost, can't be seen, or does not get there. */
async function reach(page: Page, target: Locator, isFresh: boolean): Promise<void> {
  await target.waitFor()
  const lost = await page.evaluate<string>(FOCUS_PROBLEM)
  assert.ok(isFresh || lost !== 'nothing has the focus', `nothing has the focus before ${target} is reached`)
  const problems: string[] = []
  for (let tabs = 0; tabs <= MAX_TABS; tabs++) {
    if ((await target.and(page.locator(':focus')).count()) > 0) {
      assert.deepEqual(problems, [])
      return
    }
    const isBefore = await target.evaluate(
      (element) => (element.ownerDocument.activeElement.compareDocumentPosition(element) & element.DOCUMENT_POSITION_PRECEDING) > 0,
    )
    await page.keyboard.press(isBefore ? 'Shift+Tab' : 'Tab')
    const problem = await page.evaluate<string>(FOCUS_PROBLEM)
    if (problem !== '') problems.push(problem)
  }
  assert.fail(`Tab does not reach ${target}: ${problems.join('; ')}`)
}
