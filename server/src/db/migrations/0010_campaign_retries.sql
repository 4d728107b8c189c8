-- A repetition leaves out the messages that the cancellation of the first campaign withdrew, unless the operator asks for them. The choice is
-- stored with the repetition, so that every node makes the same messages from it, also after a crash.
alter table campaigns add column retry_includes_cancelled boolean not null default false;
-- Repetitions of earlier versions include them.
update campaigns set retry_includes_cancelled = true where retry_of is not null;
alter table campaigns add constraint campaigns_retry_choice check (retry_of is not null or not retry_includes_cancelled);
