-- What roles other than the owner have in a schema ($1), the owner being that of its first table ($2). $3: names of the relations and functions that are used.
-- A role that may act as the owner is no other one, nor is a superuser. An object whose owner is the superuser who made the cluster has no row in pg_shdepend.
with place as (
	select n.oid, n.nspname, n.nspowner, n.nspacl, m.relowner as owner
	from pg_namespace n join pg_class m on m.relnamespace = n.oid and m.relname = $2 where n.nspname = $1),
other as (
	select r.oid, r.oid::regrole::text as name from pg_roles r, place p where not pg_has_role(r.oid, p.owner, 'member')),
owned as ( -- by others
	select s.classid, s.objid, o.name as role from pg_shdepend s join other o on o.oid = s.refobjid
	where s.refclassid = 'pg_authid'::regclass and s.deptype = 'o' and s.dbid = (select d.oid from pg_database d where d.datname = current_database())),
relation as (
	select c.oid, c.relname, c.relowner, c.relacl, c.relkind from pg_class c join place p on c.relnamespace = p.oid),
part as ( -- relations of the schema, and what belongs to one: triggers, rules, policies, defaults, constraints, indexes, tables that inherit
	select 'pg_class'::regclass::oid as classid, r.oid as objid from relation r
	union select d.classid, d.objid from pg_depend d join relation r on d.refobjid = r.oid where d.refclassid = 'pg_class'::regclass and d.deptype in ('a', 'i')),
found as (
	select 1 as rank, 'schema' as kind, 'schema ' || p.nspname as what, '' as other, o.name as role, false as fatal
	from place p join other o on o.oid = p.nspowner
	union all
	select 2, 'right', 'create on ' || p.nspname, 'schema', coalesce(o.name, 'public'), false
	from place p, lateral aclexplode(p.nspacl) a left join other o on o.oid = a.grantee
	where a.privilege_type = 'CREATE' and (a.grantee = 0 or o.oid is not null) and a.grantee <> p.nspowner
	union all
	select 2, 'right', 'trigger on ' || p.nspname || '.' || quote_ident(r.relname), 'table', coalesce(o.name, 'public'), false
	from place p, relation r, lateral aclexplode(r.relacl) a left join other o on o.oid = a.grantee
	where a.privilege_type = 'TRIGGER' and (a.grantee = 0 or o.oid is not null) and a.grantee <> r.relowner
	union all
	select 3, 'object', i.type || ' ' || i.identity, '', w.role, coalesce(i.name, (select f.proname::text from pg_proc f where f.oid = d.objid and d.classid = 'pg_proc'::regclass), '') = any($3::text[])
	from place p join pg_depend d on d.refobjid = p.oid and d.refclassid = 'pg_namespace'::regclass and d.deptype = 'n' join owned w on w.classid = d.classid and w.objid = d.objid,
		lateral pg_identify_object(d.classid, d.objid, 0) i
	where not (d.classid = 'pg_type'::regclass and exists (select from pg_type y where y.oid = d.objid and y.typrelid <> 0))
	union all
	select distinct 4, 'code', i.type || ' ' || i.identity, j.type || ' ' || j.identity, w.role, true
	from part x join pg_depend d on d.classid = x.classid and d.objid = x.objid and d.refclassid <> 'pg_class'::regclass join owned w on w.classid = d.refclassid and w.objid = d.refobjid,
		lateral pg_identify_object(x.classid, x.objid, 0) i, lateral pg_identify_object(d.refclassid, d.refobjid, 0) j
	where d.refclassid not in ('pg_namespace'::regclass, 'pg_constraint'::regclass))
select f.kind, f.what, f.other, f.role, p.owner::regrole::text, f.fatal::text from found f, place p order by f.rank, f.what, f.other, f.role
