-- Replies that were processed before the reply loop emptied them (delivery/replies.ts). Their account has what it needs of them, and the rows
-- name no account, so nobody could show or erase them for one.
update carrier_events set phone = '', event = '{}'
where process_after is null and kind in ('tapped', 'wrote', 'shared-location', 'sent-file', 'subscribed', 'unsubscribed') and phone <> '';
