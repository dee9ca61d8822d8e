-- The statement of a group. What stands between "--?" and "--." is in it where the group has derived values, says where runs are, has deletes, or
-- may have been stored before: to begin with a part costs as much as to perform it, and most groups need none.
--
-- A statement that is prepared keeps its plan while the tables grow. So what is looked up in a table is looked up row by row: behind
-- "offset 0" nothing but the index of the name can be used, where a join could read all of it.
with m as materialized (
	select t.*, h.at, h.id, h.cid, h.gone, r.token as held
	from unnest($1::int[], $2::int[], $3::text[], $4::bytea[], $5::bytea[], $6::bigint[], $7::bigint[], $8::text[], $9::text[], $10::bigint[], $11::bytea[], $12::text[], $13::bytea[], $31::int[], $32::bytea[], $33::bytea[])
		as t(b, kind, name, old, new, seq, ts, note, base, shared, events, root, token, moved, keys, data)
	join lateral (select h.ctid as at, h.id, h.cid, h.gone from wf.heads h where h.name = t.name offset 0) h on true
	left join lateral (select r.token from wf.heads r where r.name = t.root offset 0) r on true),
--? unclear
was as materialized (
	select m.b from m
	left join lateral (select true as there from wf.reflog l where l.head = m.id and l.seq = m.seq and l.ts = m.ts
		and case when l.data is null then l.new = m.new else l.data = m.data and l.new in (m.new, '') end -- one that was emptied has it
		and case when m.old is null then l.name <> '' else l.name = '' and coalesce((select p.new from wf.reflog p where p.head = l.head and p.n = l.n - 1 order by p.seq desc, p.n desc limit 1), '') in (m.old, '') end limit 1) l on true
	where m.kind = 0 group by m.b having bool_and(l.there is true)),
--.
ok as materialized (
	select m.b from m
--? unclear
	where m.b not in (select b from was)
--.
	group by m.b having bool_and(
		case m.kind when 0 then m.cid is not distinct from m.old and not m.gone
			when 1 then m.cid is not distinct from m.old and not m.gone
			when 3 then m.cid is not null
			when 5 then m.cid is not distinct from m.old and not m.gone
			else true end
		and (m.token is null or m.held is not distinct from m.token))
	union all select b from unnest($14::int[]) b),
u as (
	update wf.heads h set cid = m.new, seq = m.seq, ts = m.ts, n = h.n + 1, gone = h.gone or m.kind = 1,
		base = coalesce(m.base, h.base), shared = coalesce(m.shared, h.shared),
		root = case when m.old is null and m.base is null and m.root <> m.name and starts_with(m.name, 'run/') then m.root else h.root end
	from m join ok using (b) where h.ctid = m.at and m.kind < 3 -- it is locked, so it lies where it was read
	returning h.name, h.id, m.kind, m.seq, h.n, m.old, m.new, m.events, m.ts, m.note, m.moved, m.keys, m.data),
l as (
	insert into wf.reflog(n, ts, head, seq, moved, used, new, name, note, events, keys, data)
	select n, ts, id, seq, moved, (extract(epoch from statement_timestamp()) / 86400)::int, case when seq > 0 and data is not null then '' else new end, case when old is null then name else '' end, note, events, keys, data from u where kind = 0),
k as (
	insert into wf.blocks(cid, data, used)
	select distinct on (t.cid) t.cid, t.data, (extract(epoch from statement_timestamp()) / 86400)::int
	from unnest($15::int[], $16::bytea[], $17::bytea[]) t(b, cid, data) join ok using (b) order by t.cid
	on conflict (cid) do update set used = excluded.used where blocks.used < excluded.used - 1),
--? values
d as (
	select distinct on (t.key) t.key, t.value
	from unnest($18::int[], $19::text[], $20::bytea[], $21::text[]) t(b, key, value, run) join ok using (b)
	left join lateral (select r.gone from wf.heads r where r.name = t.run offset 0) r on true
	where t.value is null or r.gone is not true
	order by t.key, t.b desc),
dw as (
	insert into wf.derived(key, value) select key, value from d where value is not null order by key
	on conflict (key) do update set value = excluded.value),
dd as (
	delete from wf.derived where key = any(array(select key from d where value is null))),
--.
--? runs
s as (
	select t.run, max(t.state) as state, bool_or(t.state = '') as woken, max(t.parent) as parent, string_to_array(max(t.needs), ',') as needs, max(t.home) as home, max(t.workflow) as workflow,
		case when bool_or(t.state = '') then min(clock.now) else max(case t.due when 1 then clock.now when 2 then clock.now + 2000000 else t.due end) end as due
	from unnest($23::int[], $24::text[], $25::text[], $26::bigint[], $27::text[], $28::text[], $29::text[], $30::text[]) t(b, run, state, due, parent, needs, home, workflow) join ok using (b),
		(select (extract(epoch from statement_timestamp()) * 1000000)::bigint as now) clock
	group by t.run),
sw as (
	insert into wf.runs as r (run, state, due, woken, parent, needs, home, workflow)
	select run, state, due, woken, parent, needs, home, workflow from s order by run
	on conflict (run) do update set
		woken = (r.woken or excluded.woken) and coalesce(nullif(excluded.state, ''), r.state) not in ('done', 'failed', 'cancelled'),
		state = coalesce(nullif(excluded.state, ''), r.state),
		due = case when coalesce(nullif(excluded.state, ''), r.state) in ('done', 'failed', 'cancelled') then null
			when r.woken and not excluded.woken then r.due else excluded.due end,
		parent = case excluded.state when '' then r.parent else excluded.parent end,
		needs = case excluded.state when '' then r.needs else excluded.needs end,
		home = case excluded.state when '' then r.home else excluded.home end,
		workflow = case excluded.state when '' then r.workflow else excluded.workflow end),
--.
--? deletes
sd as (
	delete from wf.runs where run = any(array(select substr(name, 5) from u where kind = 1))),
--.
c as (
	insert into wf.changes(by, heads) select $22, string_agg(int4send(id), '') from u having count(*) > 0)
select b::bigint from ok
--? unclear
	union all select b::bigint from was
--.
