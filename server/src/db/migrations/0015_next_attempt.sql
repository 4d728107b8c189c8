-- When the last attempt was made: shows which of the listed attempts is followed by the one that is due. Null before the first, and after a first
-- attempt that was recorded by an earlier version. Only a failed attempt writes it, into a row that it changes anyway.
alter table webhook_deliveries add column attempted_at timestamptz(3);
