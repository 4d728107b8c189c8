-- The log is filtered by exactly one of these, and read from the newest entry on. Without an index, a value that few entries have, or none, means
-- that the whole log is read.
create index on audit_log (subject, id);
create index on audit_log (actor_name, id);
create index on audit_log (action, id);
