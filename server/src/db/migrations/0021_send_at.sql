-- When the caller asked for the message to be sent (`sendAt`). Null: at once.
alter table messages add column scheduled_at timestamptz(3);
