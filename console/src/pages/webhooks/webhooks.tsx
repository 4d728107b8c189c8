import type { Place } from '../../app/place.ts'
import { EndpointPage } from './endpoint.tsx'
import { EndpointList } from './endpoint-list.tsx'
import './webhooks.css'

/** The list of endpoints, with the form of a new one at `webhooks/new`; or one endpoint, if the address has its id. */
export function WebhooksPage({ place }: { place: Place }) {
  const [, shown] = place.path
  if (shown === undefined || shown === 'new') return <EndpointList isAdding={shown === 'new'} />
  return <EndpointPage key={shown} endpointId={Number(shown)} place={place} />
}
