import { useEffect, useState } from 'preact/hooks'
import type { IconName } from '../kit/icon.tsx'
import { hasPage, PAGES } from '../pages/pages.ts'
import * as say from '../words/en-palette.ts'
import { type ApiProblem, ask, askAll } from './api.ts'
import { linkTo } from './place.ts'
import { type Account, useFrame } from './session.tsx'

/** Something with a name and an id. */
export type Known = { name: string; id: string; text: string; icon: IconName; href: string }

/** The pages that show one thing each, how the API calls the list of them, and the field with their ids. */
const KINDS = [
  ['campaigns', 'campaigns', 'campaignId'],
  ['templates', 'templates', 'id'],
  ['groups', 'segments', 'segmentId'],
  ['people', 'people', 'personId'],
  ['webhooks', 'webhook-endpoints', 'endpointId'],
  ['agents', 'agents', 'agentId'],
] as const

/** What the lists have in common. A group that only the API has filled may have no name. */
type Item = { name?: string; displayName?: string; url?: string; email?: string } & Partial<
  Record<(typeof KINDS)[number][2], string | number>
>

function toKnown(page: keyof typeof say.kinds, id: string, { name = '', displayName, url, email }: Item, accountId: number): Known {
  const all = [displayName ?? url ?? name, email].filter(Boolean).join(', ')
  return {
    name: all,
    id,
    text: `${say.kinds[page]} ${all} (${id})`,
    icon: PAGES.find((each) => each.name === page)?.icon ?? 'search',
    href: linkTo(page === 'accounts' ? { accountId: Number(id), path: [] } : { accountId, path: [page, id] }),
  }
}

/** The things on a page. The agents of an account come at once, all others in parts. */
async function read({ accountId, role }: Account, [page, list, idField]: (typeof KINDS)[number]): Promise<Known[]> {
  const path = page === 'people' && role === 'operator' ? '/people' : `/accounts/${accountId}/${list}`
  const items = page === 'agents' ? (await ask<{ items: Item[] }>(path)).items : await askAll<Item>(path)
  return items.map((item) => toKnown(page, String(item[idField]), item, accountId))
}

/** What Ctrl-K finds by a name or an id, by kinds. Each opening of the palette reads it again. `opened`: how often the palette has opened. */
export function useKnown(opened: number) {
  const { account, accounts } = useFrame()
  const { accountId, role } = account
  const [lists, setLists] = useState<Record<string, Known[]>>({})
  const [problem, setProblem] = useState<ApiProblem>()
  const [tries, setTries] = useState(0)
  const keyOf = (page: string) => `${accountId} ${page}`
  useEffect(() => {
    if (opened === 0) return
    let isOver = false
    setProblem(undefined)
    for (const kind of KINDS) {
      const [page] = kind
      if (!PAGES.some((each) => each.name === page && hasPage(each, role))) continue
      read(account, kind).then(
        (known) => isOver || setLists((last) => ({ ...last, [keyOf(page)]: known })),
        (error: ApiProblem) => isOver || setProblem(error),
      )
    }
    return () => {
      isOver = true
    }
  }, [opened, tries, accountId])
  const others = accounts.filter((other) => other.accountId !== accountId)
  const known = [
    ...KINDS.map(([page]) => lists[keyOf(page)] ?? []),
    others.map((other) => toKnown('accounts', String(other.accountId), other, accountId)),
  ]
  return { known, problem, reload: () => setTries((last) => last + 1) }
}
