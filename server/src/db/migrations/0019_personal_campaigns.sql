-- The values for members without the attribute. Null: the content and the SMS have no variables, so all messages are the same.
alter table campaigns add column variables json;
-- A campaign that has started also sends to members who were removed since.
alter table removed_members add column attributes json;
