-- The campaigns that are not over: which accounts have trouble, and what ends badly if an agent is deactivated. An account may have thousands
-- that are over.
create index campaigns_open on campaigns (account_id, agent_id) where status in ('SCHEDULED', 'RUNNING', 'PAUSED');
create index campaigns_completed_at on campaigns (completed_at) where status = 'COMPLETED';
create index webhook_endpoints_failing on webhook_endpoints (account_id)
  where removed_at is null and (status = 'ACTIVE' and failing_since is not null or disabled_because = 'FAILING');
