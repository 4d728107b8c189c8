import type { TargetedEvent, TargetedMouseEvent } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Icon } from '../kit/icon.tsx'
import { useStreamedTroubles } from '../pages/health/use-health.ts'
import { hasPage, PAGES } from '../pages/pages.ts'
import { type Endpoint, isFailing, type Page } from '../pages/webhooks/endpoints.ts'
import { pages } from '../words/en.ts'
import * as say from '../words/en-frame.ts'
import * as healthWords from '../words/en-health.ts'
import { number } from '../words/numbers.ts'
import { usePolled } from './fresh.ts'
import { go, linkHere } from './place.ts'
import { useResource } from './resource.ts'
import { type Account, useFrame } from './session.tsx'

const GROUPS = [undefined, 'send', 'follow', 'connect', 'operator'] as const

/** On a narrow page, the side bar is a menu, which has done its work when a page is chosen. */
function closeAfterLink({ target, currentTarget }: TargetedMouseEvent<HTMLElement>): void {
  if ((target as Element).closest('a') !== null) currentTarget.hidePopover()
}

export function SideBar({ accounts, current }: { accounts: Account[]; current: string | undefined }) {
  const { account, live } = useFrame()
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: a key on a link clicks it, too.
    <aside id="side" class="side" popover="auto" onClick={closeAfterLink}>
      <a class="brand" href={linkHere([])}>
        Herald
      </a>
      <AccountSwitch accounts={accounts} />
      <nav aria-label={say.pages}>
        {GROUPS.map((group) => {
          const shown = PAGES.filter((page) => page.group === group && hasPage(page, account.role) && page.isInNavigation !== false)
          if (shown.length === 0) return null
          return (
            <section>
              {group && <h2>{say.groups[group]}</h2>}
              {shown.map(({ name, icon }) => (
                <a href={linkHere(name === 'overview' ? [] : [name])} {...(name === current && { 'aria-current': 'page' as const })}>
                  <Icon name={icon} size={17} />
                  {pages[name]}
                  {name === 'webhooks' && <FailingEndpoints />}
                  {name === 'health' && <HealthTroubles />}
                </a>
              ))}
            </section>
          )
        })}
      </nav>
      <footer>
        <span class={`pulse is-${live}`} aria-hidden="true" /> <span role="status">{say.liveStates[live]}</span>
        <a href="docs/admin">{say.api}</a>
      </footer>
    </aside>
  )
}

/** How many endpoints do not accept events, or were disabled because they did not. */
function FailingEndpoints() {
  const { account } = useFrame()
  const endpoints = useResource<Page<Endpoint>>(`/accounts/${account.accountId}/webhook-endpoints?limit=200`)
  usePolled(endpoints.reload)
  const failing = endpoints.value?.items.filter(isFailing).length ?? 0
  return <Badge count={failing} label={say.failingEndpoints(failing)} />
}

/** How many things are wrong with Herald as a whole. Operators see it on every page. */
function HealthTroubles() {
  const wrong = useStreamedTroubles().filter(({ tone }) => tone === 'bad').length
  return <Badge count={wrong} label={healthWords.badge(wrong)} />
}

function Badge({ count, label }: { count: number; label: string }) {
  if (count === 0) return null
  return (
    <em class="is-bad">
      <span aria-hidden="true">{number.format(count)}</span>
      <span class="sr">{label}</span>
    </em>
  )
}

/** Another account has a new frame. The switch gets the focus back, so that a person can go on by the keyboard. */
let wasSwitched = false

function AccountSwitch({ accounts }: { accounts: Account[] }) {
  const { account } = useFrame()
  const select = useRef<HTMLSelectElement>(null)
  useEffect(() => {
    if (wasSwitched) select.current?.focus()
    wasSwitched = false
  }, [])
  const change = (event: TargetedEvent<HTMLSelectElement>) => {
    wasSwitched = true
    go({ accountId: Number(event.currentTarget.value), path: [] })
  }
  const { accountId, name, modules, suspendedAt } = account
  return (
    <label class="switch">
      <span class="avatar" aria-hidden="true">
        {name.slice(0, 1).toUpperCase()}
      </span>
      <span>
        <b>{name}</b>
        <small>{suspendedAt === undefined ? say.accountNote(accountId, modules.join(', ')) : say.suspended}</small>
      </span>
      <Icon name="chevrons-up-down" size={14} />
      <select ref={select} aria-label={say.account} value={String(accountId)} onChange={change}>
        {accounts.map((each) => (
          <option value={String(each.accountId)}>
            {each.name} ({each.accountId})
          </option>
        ))}
      </select>
    </label>
  )
}
