-- Delivery windows, as text (windows/window.ts), such as `09:00-20:00 12345 recipient`. Null: none.

-- The window of campaigns that have none of their own.
alter table accounts add column campaign_window text;
alter table campaigns add column delivery_window text;
-- With the place of the recipient, whose clocks count: it fixes the open times, without the number and the groups.
alter table messages add column delivery_window text;
-- As in the message. A claim finds here whether the window is open.
alter table queue add column delivery_window text;
-- A campaign that has started also sends to members who were removed since, by their clocks.
alter table removed_members add column time_zone text;
