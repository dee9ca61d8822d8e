-- What the process has of all that runs need, as it asks for those that are due; {}: it asks for none.
alter table wf.workers add column has text[] not null default '{}';
-- The machine whose files the run works in, where it may go on with a copy of them once no process is there.
alter table wf.runs add column home text collate "C";
-- By which runs are counted; '' for one that has not moved since.
alter table wf.runs add column workflow text not null default '';

-- Texts that processes change one at a time: what a schedule has seen.
create table wf.notes (
	name text collate "C" primary key,
	n    bigint not null,                -- how often it was changed
	body bytea not null
);
-- Roles that were given rights before have those on it that they have on wf.derived.
do $$
declare r record;
begin
	for r in select a.grantee::regrole::text as role, a.privilege_type as privilege from pg_class c, aclexplode(c.relacl) a
		where c.oid = 'wf.derived'::regclass and a.grantee <> c.relowner and a.grantee <> 0
	loop
		execute format('grant %s on wf.notes to %s', r.privilege, r.role);
	end loop;
end $$;
