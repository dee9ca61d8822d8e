-- What another role can put into the schema public, where everybody may: functions, operators, types and relations with every name that
-- PostgreSQL has in pg_catalog, for the same types, and for each of those that a polymorphic one stands for. Each ends the statement that uses it with the
-- word canary, which the log of the server then has. Nothing is made for what no statement can call.
grant create, usage on schema public to mallory;
set role mallory;
set client_min_messages = warning;
create function public.canary() returns boolean language plpgsql as $$begin raise exception 'canary: a relation or type'; end$$;

do $do$
declare
	f record;
	t text;
	args text;
	stands constant text[] := '{text,bytea,bigint,integer,boolean,oid,xid8,timestamptz}';
begin
	for f in select distinct p.proname, oidvectortypes(p.proargtypes) as types from pg_proc p where p.pronamespace = 'pg_catalog'::regnamespace order by 1, 2
	loop
		if f.types like '%internal%' or f.types like '%cstring%' or f.types like '%range%' or f.types like '%anyenum%' or f.types ~ '(trigger|handler|pg_ddl_command)' then
			continue;
		end if;
		foreach t in array case when f.types like '%any%' then stands else stands[1:1] end
		loop
			args := regexp_replace(f.types, '\many(compatible)?array\M', t || '[]', 'g');
			args := regexp_replace(args, '"any"|\many(compatible)?(element|nonarray)?\M', t, 'g');
			begin
				execute format('create or replace function public.%I(%s) returns text language plpgsql as %L', f.proname, args, format('begin raise exception %L; end', 'canary: the function ' || f.proname));
			exception when duplicate_function or invalid_function_definition or undefined_object or feature_not_supported then null;
			end;
		end loop;
	end loop;
	for f in select distinct o.oprname, format_type(nullif(o.oprleft, 0), null) as l, format_type(nullif(o.oprright, 0), null) as r from pg_operator o where o.oprnamespace = 'pg_catalog'::regnamespace and o.oprname <> '=>'
	loop
		if coalesce(f.l, '') ~ 'range|anyenum|internal' or coalesce(f.r, '') ~ 'range|anyenum|internal' or f.r is null then
			continue;
		end if;
		foreach t in array case when coalesce(f.l, '') || f.r like '%any%' then stands else stands[1:1] end
		loop
			args := concat_ws(', ', f.l, f.r);
			args := regexp_replace(args, '\many(compatible)?array\M', t || '[]', 'g');
			args := regexp_replace(args, '\many(compatible)?(element|nonarray)?\M', t, 'g');
			begin
				execute format('create or replace function public.canary(%s) returns boolean language plpgsql as %L', args, 'begin raise exception ''canary: an operator''; end');
				execute format('create operator public.%s (function = public.canary%s, rightarg = %s)', f.oprname,
					case when f.l is null then '' else ', leftarg = ' || split_part(args, ', ', 1) end, case when f.l is null then args else split_part(args, ', ', 2) end);
			exception when duplicate_function or invalid_function_definition or undefined_object or syntax_error then null;
			end;
		end loop;
	end loop;
	-- Types last, since what is above names those that are meant.
	for f in select c.relname from pg_class c where c.relnamespace = 'pg_catalog'::regnamespace and c.relkind in ('r', 'v') order by 1
	loop
		begin
			execute format('create view public.%1$I as select x.* from pg_catalog.%1$I x where public.canary()', f.relname);
		exception when invalid_table_definition then -- a column of a pseudo-type
			execute format('create view public.%I as select 1 as one where public.canary()', f.relname);
		end;
	end loop;
	for f in select y.typname from pg_type y where y.typnamespace = 'pg_catalog'::regnamespace and y.typtype = 'b' and y.typcategory <> 'A' and y.typname not in ('char') order by 1
	loop
		execute format('create domain public.%1$I as pg_catalog.%1$I check (public.canary())', f.typname);
	end loop;
end $do$;
