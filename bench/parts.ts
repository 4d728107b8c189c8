import type { Part } from './part.ts'
import { measureAccept } from './parts/accept.ts'
import { measureAttacks } from './parts/attacks.ts'
import { measureCampaign } from './parts/campaign.ts'
import { measureCarriers } from './parts/carriers.ts'
import { measureConsole } from './parts/console.ts'
import { measureExports } from './parts/exports.ts'
import { measureFanOut } from './parts/fan-out.ts'
import { measureFeed } from './parts/feed.ts'
import { measureGrowth } from './parts/growth.ts'
import { measureHistory } from './parts/history.ts'
import { measureImport } from './parts/import.ts'
import { measureKannel } from './parts/kannel.ts'
import { measureLatency } from './parts/latency.ts'
import { measureLists } from './parts/lists.ts'
import { measureLowLoad } from './parts/low-load.ts'
import { measureMemory } from './parts/memory.ts'
import { measureReports } from './parts/reports.ts'
import { measureScaling } from './parts/scaling.ts'
import { measureSignIn } from './parts/sign-in.ts'
import { measureStreams } from './parts/streams.ts'
import { measureThrough } from './parts/through.ts'
import { measureWebhookIsolation } from './parts/webhook-isolation.ts'
import { measureWebhookRate } from './parts/webhook-rate.ts'

/** `npm run bench` without a part runs these. docs/performance.md has their figures. */
export const STANDARD_PARTS: Part[] = [
  { name: 'accept', measures: 'requests accepted a second, against a bare route of Fastify', minutes: 4, run: measureAccept },
  { name: 'kannel', measures: 'the same against Kannel, if it is installed', minutes: 2, minutesEach: 1, run: measureKannel },
  { name: 'through', measures: 'messages from acceptance to READ, and the cost of each', minutes: 3, minutesEach: 2, run: measureThrough },
  { name: 'history', measures: 'the same beside 5 million messages, and beside none', minutes: 11, minutesEach: 9, run: measureHistory },
  { name: 'low-load', measures: 'the cost of a message at 150 a second', minutes: 3, minutesEach: 2, run: measureLowLoad },
  { name: 'campaign', measures: 'messages of a campaign, against single messages', minutes: 4, minutesEach: 4, run: measureCampaign },
  { name: 'latency', measures: 'acceptance and hand-over at a fifth of the top rate', minutes: 5, minutesEach: 4, run: measureLatency },
  { name: 'scaling', measures: 'cost and waits with 1 to 8 processes of a role', minutes: 10, minutesEach: 0, run: measureScaling },
  { name: 'memory', measures: "what each process keeps of an hour's messages", minutes: 6, run: measureMemory },
  { name: 'growth', measures: 'accepting and claiming beside 5 million messages, and of a million', minutes: 8, run: measureGrowth },
  { name: 'attacks', measures: "another account's response times, and memory", minutes: 8, minutesEach: 8, run: measureAttacks },
]

/** One feature each. bench/README.md has their figures. */
export const FEATURE_PARTS: Part[] = [
  { name: 'carriers', measures: 'the simulator and the connectors, each alone', minutes: 1, run: measureCarriers },
  { name: 'import', measures: 'the import of a group of a million, against a bare COPY', minutes: 3, run: measureImport },
  { name: 'fan-out', measures: 'the fan-out of a campaign to a million, against a bare insert', minutes: 5, run: measureFanOut },
  { name: 'webhook-rate', measures: 'events a second to an endpoint, against bare posts', minutes: 2, run: measureWebhookRate },
  { name: 'webhook-isolation', measures: 'the delay to a good endpoint beside bad ones', minutes: 4, run: measureWebhookIsolation },
  { name: 'feed', measures: 'pages of the event feed over a month of events, while others write', minutes: 4, run: measureFeed },
  { name: 'streams', measures: 'what 200 idle streams of the console cost', minutes: 8, run: measureStreams },
  { name: 'reports', measures: 'summaries and pages of lists of a million messages', minutes: 7, run: measureReports },
  { name: 'lists', measures: 'pages of messages by every combination of filters, of ten million', minutes: 12, run: measureLists },
  { name: 'console', measures: 'pages of the console, with ten million messages', minutes: 12, run: measureConsole },
  { name: 'sign-in', measures: 'whether the time of a wrong password tells that a name exists', minutes: 5, run: measureSignIn },
  { name: 'exports', measures: 'exports of a million messages, against a bare COPY', minutes: 4, run: measureExports },
]

export const PARTS: Part[] = [...STANDARD_PARTS, ...FEATURE_PARTS]
