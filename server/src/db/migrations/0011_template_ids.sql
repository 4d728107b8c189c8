-- Ids of templates that do not count the templates of other accounts: the milliseconds since 2020, then 12 random bits. They are in the
-- order of creation to the millisecond, and below 2^53 until 2089. Ids from before stay as they are, and are smaller than all new ones.
-- Two ids of one millisecond are equal once in 4,096 times; createTemplate() then inserts again.
create function new_template_id() returns bigint language sql volatile parallel safe as $$
  select (floor(extract(epoch from clock_timestamp()) * 1000)::bigint - 1577836800000) * 4096
    + ('x' || left(gen_random_uuid()::text, 3))::bit(12)::integer
$$;
alter table templates alter column id drop identity;
alter table templates alter column id set default new_template_id();
