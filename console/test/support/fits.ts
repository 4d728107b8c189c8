import type { Page } from 'playwright-core'

// Whether a page loses nothing when it gets narrow. These functions run in the browser.

const IN_BROWSER = `
  const CONTROLS = 'a[href], button, input, select, textarea, summary, [role="option"]'
  const scope = [...document.querySelectorAll('dialog:modal, :popover-open')].at(-1) ?? document.body
  const isShown = (element) => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0
  // Texts for screen readers only are clipped.
  const isHidden = (element) =>
    element.closest('.skip, [aria-hidden="true"], svg') !== null || getComputedStyle(element.closest('.sr') ?? element).clipPath === 'inset(50%)'
  // A drawn phone cuts texts as phones do, and scrolls. A picture shows what is also said beside it.
  const isDrawn = (element) => element.closest('.ph, [role="img"]') !== null
  const describe = (element) => element.outerHTML.slice(0, 160)
  // Times, the counts beside the pages and the ids of requests change meanwhile.
  const nameOf = (element) => {
    const named = element.labels?.[0] ?? element
    const copy = named.cloneNode(true)
    for (const changing of copy.querySelectorAll('time, em.is-bad')) changing.remove()
    const name = element.getAttribute('aria-label') ?? copy.textContent
    return element.localName + ' ' + name.replace(/\\s+/g, ' ').replace(/req_\\w+/, '').trim()
  }
  const controls = () => [...scope.querySelectorAll(CONTROLS)].filter((element) => isShown(element) && !isHidden(element))
  // A radio button or a switch is used by its label.
  const isReachable = (element) => {
    const target = ['radio', 'checkbox'].includes(element.type) ? (element.closest('label') ?? element) : element
    target.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' })
    const { x, y, width, height } = [...target.getClientRects()].find((rect) => rect.width > 0) ?? target.getBoundingClientRect()
    const hit = document.elementFromPoint(x + width / 2, y + height / 2)
    return hit !== null && (target.contains(hit) || hit.contains(target) && getComputedStyle(target).opacity === '0')
  }
`

const inBrowser = async <T>(page: Page, script: string): Promise<T> => await page.evaluate(`(() => { ${IN_BROWSER} ${script} })()`)

/** The controls that a person sees, by their names. */
export const controlsOf = (page: Page) => inBrowser<string[]>(page, 'return [...new Set(controls().map(nameOf))]')

/** Those of the controls that can't be used now: they are missing, or something else is above them. */
const unreachable = (page: Page, names: string[]) =>
  inBrowser<string[]>(
    page,
    `const usable = new Set(controls().filter(isReachable).map(nameOf))
     return ${JSON.stringify(names)}.filter((name) => !usable.has(name))`,
  )

/** The controls of the wide page that the present one does not have, not even in its menu. */
export async function lostControls(page: Page, names: string[]): Promise<string[]> {
  const missing = await unreachable(page, names)
  const menu = page.getByRole('button', { name: 'Menu', exact: true })
  if (missing.length === 0 || !(await menu.isVisible())) return missing
  await page.evaluate('scrollTo(0, 0)')
  await menu.click({ timeout: 2_000 })
  const lost = await unreachable(page, missing)
  await page.keyboard.press('Escape')
  return lost
}

/** Texts that are cut off, and parts that have to be scrolled sideways. A block of code may be, since its lines mean something. */
export const lostTexts = (page: Page) =>
  inBrowser<string[]>(
    page,
    `const lost = []
     const { scrollWidth } = document.documentElement
     if (scrollWidth > innerWidth) lost.push('the page is ' + scrollWidth + ' pixels wide')
     for (const element of scope.querySelectorAll('*')) {
       if (!isShown(element) || isHidden(element) || isDrawn(element) || element.textContent.trim() === '') continue
       if (['select', 'textarea', 'pre'].includes(element.localName)) continue
       const { overflowX, overflowY } = getComputedStyle(element)
       const isWider = element.scrollWidth > element.clientWidth + 1
       const isHigher = element.scrollHeight > element.clientHeight + 1
       const hasTitle = element.title !== '' && element.title.includes(element.textContent.trim())
       const isCut = (isWider && ['hidden', 'clip'].includes(overflowX)) || (isHigher && ['hidden', 'clip'].includes(overflowY))
       if (isCut && !hasTitle) lost.push('cut off: ' + describe(element))
       if (isWider && ['auto', 'scroll'].includes(overflowX)) lost.push('scrolls sideways: ' + describe(element))
     }
     for (const element of scope.querySelectorAll('*')) {
       if (!isShown(element) || isHidden(element) || isDrawn(element)) continue
       const { left, right } = element.getBoundingClientRect()
       if ((right > innerWidth + 1 || left < -1) && element.textContent.trim() !== '') lost.push('outside the page: ' + describe(element))
     }
     return lost`,
  )
