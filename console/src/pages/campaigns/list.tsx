import type { LiveEvent } from '../../app/live.ts'
import { filter, linkTo, type Place } from '../../app/place.ts'
import { useFrame, whyNotSend } from '../../app/session.tsx'
import { AsCurl } from '../../kit/as-curl.tsx'
import { ButtonLink } from '../../kit/controls.tsx'
import { Ago, Empty, PageHead, Pill } from '../../kit/display.tsx'
import { Filters } from '../../kit/filters.tsx'
import { LongTable } from '../../kit/long-table.tsx'
import { TimeField } from '../../kit/time-field.tsx'
import { pages } from '../../words/en.ts'
import * as say from '../../words/en-campaigns.ts'
import { nothingFound, ofLimit } from '../../words/en-kit.ts'
import * as messageWords from '../../words/en-messages.ts'
import { number } from '../../words/numbers.ts'
import { ProgressBar } from './bar.tsx'
import { type Campaign, handedOver } from './campaign.ts'
import { STATUS_LOOKS } from './status.ts'

const COLUMNS = [
  { title: say.campaign },
  { title: say.status },
  { title: say.progress, isWide: true },
  { title: say.failed, isNumber: true, isWide: true },
  { title: say.created, isWide: true },
]

const FILTERS = [{ name: 'status', label: say.status, any: messageWords.filters.anyStatus, texts: say.statuses }]

const FRESH = { restMs: 10_000, isAbout: (event: LiveEvent) => event.name === 'campaign' }

/** All campaigns of the account, newest first. */
export function CampaignList({ place }: { place: Place }) {
  const { account } = useFrame()
  const { accountId } = account
  // Filters and order have the same names in the address and in the API.
  const query = place.query.toString()
  const isFiltered = query !== ''
  const path = `campaigns${isFiltered ? '?' : ''}${query}`
  const add = whyNotSend(account) === undefined && (
    <ButtonLink kind="primary" icon="plus" href={linkTo({ accountId, path: ['campaigns', 'new'] })}>
      {say.add}
    </ButtonLink>
  )
  return (
    <>
      <PageHead title={pages.campaigns}>
        <AsCurl path={path} />
        {add}
      </PageHead>
      <Filters place={place} filters={FILTERS}>
        {(['createdFrom', 'createdTo'] as const).map((name) => (
          <TimeField
            label={say.createdBetween[name]}
            value={place.query.get(name) ?? ''}
            onChange={(time) => filter(place, { [name]: time })}
          />
        ))}
      </Filters>
      <LongTable<Campaign>
        label={pages.campaigns}
        path={`/accounts/${accountId}/${path}`}
        columns={COLUMNS}
        keyOf={({ campaignId }) => campaignId}
        cells={(campaign) => <Cells campaign={campaign} />}
        fresh={FRESH}
        empty={
          <Empty icon="megaphone" title={isFiltered ? nothingFound : say.none}>
            {!isFiltered && <p>{say.noneHint}</p>}
            {!isFiltered && add}
          </Empty>
        }
      />
    </>
  )
}

function Cells({ campaign }: { campaign: Campaign }) {
  const { accountId } = useFrame().account
  const { campaignId, name, status, segmentIds, counts, recipients, createdAt, scheduledAt } = campaign
  const progress = ofLimit(handedOver(campaign), recipients)
  return (
    <>
      <td>
        <a class="row-link" href={linkTo({ accountId, path: ['campaigns', campaignId] })}>
          {name}
        </a>
        <small>{segmentIds.length === 0 ? say.retries : say.groups(segmentIds)}</small>
        <small class="is-narrow">{progress}</small>
      </td>
      <td>
        <Pill {...STATUS_LOOKS[status]}>{say.statuses[status]}</Pill>
        {status === 'SCHEDULED' && (
          <small>
            <Ago at={scheduledAt} />
          </small>
        )}
      </td>
      <td class="is-wide camp-progress">
        <ProgressBar campaign={campaign} label={name} />
        <small>{progress}</small>
      </td>
      <td class="is-wide num">{number.format(counts.FAILED)}</td>
      <td class="is-wide when">
        <Ago at={createdAt} />
      </td>
    </>
  )
}
