create table wfhub.meta (
	one     boolean primary key default true check (one),
	layout  integer not null,
	uuid    uuid not null,
	digest  bytea not null,              -- key of the digests of requests
	version bigint not null default 0,   -- of the newest change of a job; its row is locked by those that change jobs
	swept   bigint not null default 0,   -- rows of jobs that were gone at this version are removed
	number  bigint not null default 0,   -- of the newest submission
	epoch   bigint not null default 0    -- of the newest lease
) with (fillfactor = 50);

create table wfhub.jobs (
	id      text collate "C" primary key,
	number  bigint not null,
	version bigint not null,             -- of the change that wrote it
	job     text                         -- JSON; NULL: there is no such job any more
);
create index on wfhub.jobs (version);

create table wfhub.boxes (
	number bigint primary key,           -- of the job
	box    bytea not null                -- what it starts, sealed to workers
);
alter table wfhub.boxes alter box set storage external;

create table wfhub.workers (
	id       text collate "C" primary key,
	said     text not null,              -- JSON: what it said of itself
	since    bigint not null,            -- unix µs by the clock of the server
	seen     bigint not null,
	draining boolean not null default false
) with (fillfactor = 50);

-- A row for each worker at each hub to which it is connected.
create table wfhub.links (
	worker text collate "C" not null,
	hub    bytea not null,               -- names the process
	until  bigint not null,              -- it lives till then, unix µs by the clock of the server
	primary key (worker, hub)
) with (fillfactor = 50);

create table wfhub.pointers (
	run      text collate "C" primary key,
	worker   text not null,
	epoch    bigint not null,
	seq      bigint not null,
	head     text not null,
	revision bigint not null
) with (fillfactor = 70);
