import { useFresh } from '../../app/fresh.ts'
import type { LiveEvent } from '../../app/live.ts'
import { linkTo, type Place } from '../../app/place.ts'
import { useResource } from '../../app/resource.ts'
import { useFrame } from '../../app/session.tsx'
import { Announcement } from '../../kit/announcement.tsx'
import { AsCurl } from '../../kit/as-curl.tsx'
import { ButtonLink } from '../../kit/controls.tsx'
import { Crumbs } from '../../kit/crumbs.tsx'
import { Ago, Facts, PageHead, Pill } from '../../kit/display.tsx'
import { Reading } from '../../kit/reading.tsx'
import type { Content } from '../../phone/content.ts'
import { pages } from '../../words/en.ts'
import * as say from '../../words/en-campaign.ts'
import * as campaignWords from '../../words/en-campaigns.ts'
import { deliveryWindow as windowLabel } from '../../words/en-messages.ts'
import { stage } from '../../words/en-phones.ts'
import { windowOf } from '../../words/en-timeline.ts'
import * as wizardWords from '../../words/en-wizard.ts'
import { exactTimeOf } from '../../words/numbers.ts'
import { CampaignActions } from './actions.tsx'
import { type Campaign, handedOver, isOver, pathOfCampaign } from './campaign.ts'
import { ContentPhone } from './content-phone.tsx'
import { Figures } from './figures.tsx'
import { Minutes } from './minutes.tsx'
import { type CampaignSummary, type Failures, HowFar, WhyFailed } from './results.tsx'
import { STATUS_LOOKS } from './status.ts'
import { AudienceFacts, useAudience } from './wizard/audience.tsx'

/** The stream sends a running campaign once a second, if it has changed. */
const EVERY_MS = 900

/** What the API counts anew each time. */
const FRESH = { everyMs: 4_000, restMs: 15_000 }

/** One campaign, as it goes. */
export function CampaignPage({ campaignId }: { campaignId: string; place: Place }) {
  const { account } = useFrame()
  const { accountId } = account
  const isThis = (event: LiveEvent) => event.name === 'campaign' && event.data.campaignId === campaignId
  const campaign = useResource<Campaign>(pathOfCampaign(accountId, campaignId))
  const { value } = campaign
  const isPending = value !== undefined && !isOver(value)
  useFresh(campaign.reload, { everyMs: EVERY_MS, isAbout: isThis, restMs: 5_000, firstMs: 1_000, isPending, state: JSON.stringify(value) })
  return (
    <>
      <Crumbs page="campaigns" id={campaignId} />
      {value === undefined && <PageHead title={pages.campaigns} />}
      <Reading {...campaign} />
      {value && (
        <>
          <Head campaign={value} onChanged={campaign.reload} />
          <Results campaign={value} />
        </>
      )}
    </>
  )
}

function Head({ campaign, onChanged }: { campaign: Campaign; onChanged: () => void }) {
  const { accountId, role } = useFrame().account
  const { campaignId, name, status, recipients } = campaign
  const inWords = campaignWords.statuses[status]
  return (
    <>
      <div class="title-row">
        <h1>{name}</h1>
        <Pill {...STATUS_LOOKS[status]}>{inWords}</Pill>
        <span class="note camp-notes">
          <Notes campaign={campaign} />
        </span>
        <span class="spring" />
        {status !== 'SCHEDULED' && (
          <ButtonLink icon="chart-column" href={linkTo({ accountId, path: ['reports'], query: { campaignId } })}>
            {say.report}
          </ButtonLink>
        )}
        <AsCurl path={`campaigns/${campaignId}`} />
        {role !== 'viewer' && <CampaignActions campaign={campaign} onChanged={onChanged} />}
      </div>
      <Announcement text={say.announced(inWords, handedOver(campaign), recipients, campaign.counts.FAILED)} />
    </>
  )
}

function Notes({ campaign }: { campaign: Campaign }) {
  const { accountId } = useFrame().account
  const { campaignId, status, segmentIds, recipients, retryOf, retriedBy, clientReferenceId, scheduledAt, startedAt } = campaign
  const endedAt = campaign.completedAt ?? campaign.cancelledAt
  return (
    <>
      <span>
        {startedAt && !endedAt && say.started} <Ago at={endedAt ?? startedAt ?? scheduledAt} />
      </span>
      {segmentIds.length > 0 && <span>{campaignWords.groups(segmentIds)}</span>}
      {retryOf && <CampaignLink campaignId={retryOf}>{say.retryOf}</CampaignLink>}
      {retriedBy && <CampaignLink campaignId={retriedBy}>{say.retriedBy}</CampaignLink>}
      {status !== 'SCHEDULED' && (
        <span>
          <a href={linkTo({ accountId, path: ['messages'], query: { campaignId } })}>{campaignWords.recipients(recipients)}</a>
        </span>
      )}
      {clientReferenceId && (
        <span>
          <bdi>{clientReferenceId}</bdi>
        </span>
      )}
    </>
  )
}

function CampaignLink({ campaignId, children }: { campaignId: string; children: string }) {
  const { accountId } = useFrame().account
  return (
    <span>
      <a href={linkTo({ accountId, path: ['campaigns', campaignId] })}>{children}</a>
    </span>
  )
}

function Results({ campaign }: { campaign: Campaign }) {
  const { account } = useFrame()
  const { accountId } = account
  const { campaignId, startedAt } = campaign
  const summary = useResource<CampaignSummary>(startedAt && `/accounts/${accountId}/reports/campaigns/${campaignId}/summary`)
  const failures = useResource<Failures>(startedAt && pathOfCampaign(accountId, campaignId, '/failures'))
  useFresh(summary.reload, FRESH)
  useFresh(failures.reload, FRESH)
  return (
    <>
      {startedAt && <Figures campaign={campaign} summary={summary.value} />}
      <div class="camp-grid">
        {startedAt && (
          <div class="camp-results">
            <Minutes accountId={accountId} campaign={campaign} />
            <HowFar summary={summary} />
            <WhyFailed accountId={accountId} campaignId={campaignId} failures={failures} />
          </div>
        )}
        {campaign.status === 'SCHEDULED' && <Plan campaign={campaign} />}
        <Preview campaign={campaign} />
      </div>
    </>
  )
}

/** What a campaign will do that has not started. */
function Plan({ campaign: { agentId, segmentIds, scheduledAt, expiresAt, deliveryWindow } }: { campaign: Campaign }) {
  const counted = useAudience({ agentId, groups: segmentIds })
  return (
    <section class="card camp-plan">
      <h2>{campaignWords.statuses.SCHEDULED}</h2>
      <Facts
        facts={[
          [wizardWords.start, exactTimeOf(scheduledAt)],
          [wizardWords.expires, expiresAt === undefined ? wizardWords.after48Hours : exactTimeOf(expiresAt)],
          [windowLabel, deliveryWindow && windowOf(deliveryWindow)],
        ]}
      />
      <AudienceFacts counted={counted} />
    </section>
  )
}

type SentContent = { content: Content; sms?: { sender: string; text: string } }

function Preview({ campaign: { campaignId, agentId } }: { campaign: Campaign }) {
  const { account } = useFrame()
  const content = useResource<SentContent>(pathOfCampaign(account.accountId, campaignId, '/content'))
  const { value } = content
  return (
    <section class="camp-stage" aria-label={stage}>
      <Reading {...content} />
      {value && <ContentPhone content={value.content} agentId={agentId} />}
      {value?.sms && (
        <p class="camp-sms">
          <b>{wizardWords.steps.sms}</b> <bdi class="soft">{value.sms.sender}</bdi>
          <br />
          {value.sms.text}
        </p>
      )}
    </section>
  )
}
