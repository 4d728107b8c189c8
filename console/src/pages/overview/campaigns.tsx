import type { LiveEvent } from '../../app/live.ts'
import { linkTo } from '../../app/place.ts'
import { useFrame } from '../../app/session.tsx'
import * as say from '../../words/en-overview.ts'
import { type Campaign, processed } from '../campaigns/campaign.ts'
import type { Page } from '../webhooks/endpoints.ts'
import { Links } from './links.tsx'
import { Part } from './part.tsx'
import { useRefreshed } from './refreshed.ts'

const AFTER_PROGRESS = { everyMs: 2_000, isAbout: (event: LiveEvent) => event.name === 'campaign' }

const progressOf = (campaign: Campaign) => {
  const { name, recipients } = campaign
  const value = processed(campaign)
  return (
    <>
      <meter max={Math.max(1, recipients)} value={value} aria-label={name} /> {say.processed(value, recipients)}
    </>
  )
}

/** Campaigns under way. */
export function Campaigns() {
  const { accountId } = useFrame().account
  const campaigns = useRefreshed<Page<Campaign>>(`/accounts/${accountId}/campaigns?status=RUNNING&limit=20`, AFTER_PROGRESS)
  return (
    <Part title={say.campaigns} resource={campaigns}>
      {({ items }) => (
        <Links
          none={say.noCampaigns}
          links={items.map((campaign) => ({
            href: linkTo({ accountId, path: ['campaigns', campaign.campaignId] }),
            text: campaign.name,
            beside: progressOf(campaign),
          }))}
        />
      )}
    </Part>
  )
}
