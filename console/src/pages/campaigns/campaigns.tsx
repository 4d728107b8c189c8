import type { Place } from '../../app/place.ts'
import { CampaignList } from './list.tsx'
import { CampaignPage } from './live.tsx'
import { WizardPage } from './wizard/wizard.tsx'
import './campaigns.css'

/** The list of campaigns; the wizard at `campaigns/new`; or one campaign, if the address has its id. */
export function CampaignsPage({ place }: { place: Place }) {
  const [, shown] = place.path
  if (shown === undefined) return <CampaignList place={place} />
  if (shown === 'new') return <WizardPage place={place} />
  return <CampaignPage key={shown} campaignId={shown} place={place} />
}
