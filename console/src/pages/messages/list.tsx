import { useState } from 'preact/hooks'
import { type ApiProblem, urlOf } from '../../app/api.ts'
import { linkHere, linkWith, type Place } from '../../app/place.ts'
import { useFrame, whyNotSend } from '../../app/session.tsx'
import { Announcement } from '../../kit/announcement.tsx'
import { AsCurl, ownCursor } from '../../kit/as-curl.tsx'
import { Button, ButtonLink } from '../../kit/controls.tsx'
import { Empty, Loading, PageHead } from '../../kit/display.tsx'
import { Problem } from '../../kit/problem.tsx'
import { pages } from '../../words/en.ts'
import * as frameWords from '../../words/en-frame.ts'
import * as say from '../../words/en-messages.ts'
import { FilterBar } from './filters.tsx'
import { filtersOf, queryOf } from './query.ts'
import { MessageTable } from './table.tsx'
import { useList, useTail } from './use-list.ts'

/** The messages of the account, newest first. On the first page, new ones appear at the top. */
export function MessageList({ place }: { place: Place }) {
  const { account } = useFrame()
  const filters = filtersOf(place.query)
  const cursor = place.query.get('cursor')
  const path = `/accounts/${account.accountId}/messages${queryOf(filters, cursor)}`
  const list = useList(path)
  const [isPaused, setPaused] = useState(false)
  const isOn = cursor === null && !isPaused && !list.hasLookedFurther
  const isLimited = account.role === 'viewer' && (filters.recipient ?? filters.clientReferenceId) !== undefined
  const isNew = useTail(path, isOn, list.items, list.reload, isLimited)
  const arrived = list.items.filter(isNew).length
  const resume = () => {
    setPaused(false)
    list.reset()
    list.reload()
  }
  return (
    <>
      <PageHead title={pages.messages}>
        {cursor === null && <Tail isOn={isOn} onPause={() => setPaused(true)} onResume={resume} />}
        {account.role !== 'viewer' && list.problem === undefined && (
          <ButtonLink icon="file-text" href={urlOf(`/accounts/${account.accountId}/messages/export${queryOf(filters)}`)} download>
            {say.download}
          </ButtonLink>
        )}
        <AsCurl path={`messages${queryOf(filters, ownCursor(account, cursor))}`} />
      </PageHead>
      <Announcement text={arrived > 0 ? say.arrived(arrived) : ''} />
      <FilterBar place={place} filters={filters} />
      {list.problem && <ListProblem problem={list.problem} place={place} onRetry={list.retry} />}
      {!list.isLoaded && list.problem === undefined && <Loading />}
      {list.items.length > 0 && (
        <section class="card table-card">
          <MessageTable messages={list.items} isNew={isNew} />
        </section>
      )}
      {list.isLoaded && <ListEnd list={list} place={place} isFiltered={Object.keys(filters).length > 0} />}
    </>
  )
}

/** A cursor that is no longer valid never becomes valid again, so the way out is the first page. */
function ListProblem({ problem, place, onRetry }: { problem: ApiProblem; place: Place; onRetry: () => void }) {
  const isOver = problem.code === 'RCS_INVALID_CURSOR'
  return (
    <Problem problem={problem} {...(!isOver && { onRetry })}>
      {isOver ? <Newest place={place} /> : problem.status === 400 && <AsReference place={place} />}
    </Problem>
  )
}

function Newest({ place }: { place: Place }) {
  return (
    <ButtonLink icon="chevron-left" href={linkWith(place, { cursor: undefined })}>
      {say.newest}
    </ButtonLink>
  )
}

/** Digits without a plus sign may also be a reference, such as the number of an order. */
function AsReference({ place }: { place: Place }) {
  const { recipient } = filtersOf(place.query)
  if (recipient === undefined || recipient.startsWith('+')) return null
  return (
    <ButtonLink icon="search" href={linkWith(place, { recipient: undefined, cursor: undefined, clientReferenceId: recipient })}>
      {say.asReference}
    </ButtonLink>
  )
}

type TailProps = { isOn: boolean; onPause: () => void; onResume: () => void }

function Tail({ isOn, onPause, onResume }: TailProps) {
  const { live } = useFrame()
  const following = live === 'live' ? say.follows : frameWords.liveStates[live]
  return (
    <span class="tail">
      <span class={`pulse is-${isOn ? live : 'connecting'}`} aria-hidden="true" />
      <span>{isOn ? following : say.paused}</span>
      <Button icon={isOn ? 'pause' : 'play'} onClick={isOn ? onPause : onResume}>
        {isOn ? say.pause : say.resume}
      </Button>
    </span>
  )
}

type EndProps = { list: ReturnType<typeof useList>; place: Place; isFiltered: boolean }

/** What follows the rows: nothing, more, or perhaps more. */
function ListEnd({ list: { items, nextCursor, isShort, isLooking, lookFurther }, place, isFiltered }: EndProps) {
  const isFirst = !place.query.has('cursor')
  if (items.length === 0 && nextCursor === null && isFirst) return <NoMessages place={place} isFiltered={isFiltered} />
  return (
    <nav class="list-end" aria-label={pages.messages}>
      <span class="note">{say.shown(items.length)}</span>
      {!isFirst && <Newest place={place} />}
      {isShort && (
        <>
          <span class="note">{say.partly}</span>
          <Button icon="search" isBusy={isLooking} onClick={() => void lookFurther()}>
            {say.further}
          </Button>
        </>
      )}
      {nextCursor !== null && !isShort && (
        <ButtonLink icon="chevron-right" href={linkWith(place, { cursor: nextCursor })}>
          {say.older}
        </ButtonLink>
      )}
      {nextCursor === null && <span class="note">{say.end}</span>}
    </nav>
  )
}

function NoMessages({ place, isFiltered }: { place: Place; isFiltered: boolean }) {
  const { account } = useFrame()
  return (
    <Empty icon={isFiltered ? 'search' : 'message-square'} title={isFiltered ? say.nothingFound : say.empty}>
      {isFiltered && <AsReference place={place} />}
      {!isFiltered && whyNotSend(account) === undefined && (
        <ButtonLink icon="send" href={linkHere(['send'])}>
          {pages.send}
        </ButtonLink>
      )}
    </Empty>
  )
}
