import type { ComponentChildren } from 'preact'
import type { LiveEvent } from '../../app/live.ts'
import { linkTo } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import { words } from '../../words/words.ts'
import type { Page } from '../webhooks/endpoints.ts'
import { Part } from './part.tsx'
import { useRefreshed } from './refreshed.ts'

type Campaign = {
  campaignId: string
  name: string
  recipients: number
  counts: Record<'ACCEPTED' | 'SENDING' | 'DELIVERED' | 'READ' | 'FAILED', number>
}

const AFTER_PROGRESS = { everyMs: 2_000, isAbout: (event: LiveEvent) => event.name === 'campaign' }

/** Campaigns under way, and what became of the latest ones: the other numbers of the page are those of single messages. */
export function Campaigns() {
  return (
    <>
      <CampaignList title={words.overview.campaigns} query="status=RUNNING&limit=20" none={words.overview.noCampaigns}>
        {({ name, recipients, counts }) => {
          const processed = recipients - counts.ACCEPTED - counts.SENDING
          return (
            <>
              <meter min={0} max={Math.max(1, recipients)} value={processed} aria-label={name} />{' '}
              {words.overview.processed(processed, recipients)}
            </>
          )
        }}
      </CampaignList>
      <CampaignList title={words.overview.latestCampaigns} query="limit=5" none={words.overview.noCampaignYet}>
        {({ recipients, counts }) => words.overview.resultOf(counts.DELIVERED + counts.READ, counts.FAILED, recipients)}
      </CampaignList>
    </>
  )
}

type ListProps = { title: string; query: string; none: string; children: (campaign: Campaign) => ComponentChildren }

/** `children`: what stands beside the name of a campaign. */
function CampaignList({ title, query, none, children }: ListProps) {
  const { accountId } = useFrame().account
  const campaigns = useRefreshed<Page<Campaign>>(`/accounts/${accountId}/campaigns?${query}`, AFTER_PROGRESS)
  return (
    <Part title={title} resource={campaigns}>
      {({ items }) => (
        <>
          {items.length === 0 && <p class="soft">{none}</p>}
          <ul class="lines">
            {items.map((campaign) => (
              <li>
                <a href={linkTo({ accountId, path: ['messages'], query: { campaignId: campaign.campaignId } })}>{campaign.name}</a>
                <span>{children(campaign)}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </Part>
  )
}
