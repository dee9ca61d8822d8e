create table wf.heads (
	name   text collate "C" primary key,
	cid    bytea,                        -- NULL: there is no such head
	seq    bigint  not null default 0,   -- of the newest event; 0 for a head that is no journal
	ts     bigint  not null default 0,   -- of the last move, unix µs
	n      bigint  not null default 0,   -- how often it moved
	gone   boolean not null default false, -- the run was deleted
	base   text collate "C",             -- of a fork: the head whose events it shares
	shared bigint,                       -- up to this one
	root   text collate "C",             -- of a sub-workflow: the head of the run that its tree is claimed by
	token  bytea,                        -- of the claim, on the tree of this run or on whatever else the name says
	worker bytea                         -- that has the claim
) with (fillfactor = 70);
create index on wf.heads (base) where base is not null;

create table wf.reflog (
	name   text collate "C" not null,
	seq    bigint not null,
	n      bigint not null,
	old    bytea,
	new    bytea  not null,
	events bytea  not null,              -- digests of the events of the move but the last, which is new
	ts     bigint not null,
	note   text   not null,
	primary key (name, seq, n)
);
alter table wf.reflog alter events set storage external;

create table wf.blocks (
	cid  bytea primary key,
	data bytea not null,
	used integer not null                -- the day since 1970 on which it was stored, or stored again
);
alter table wf.blocks alter data set storage external;

create table wf.unreached (
	cid   bytea primary key,             -- a block that nothing led to when a collection began
	since integer not null               -- on this day, as in blocks.used
);

create table wf.derived (
	key   text collate "C" primary key,
	value bytea not null
);
alter table wf.derived alter value set storage external;

-- A row for each process that has claims, or had.
create table wf.workers (
	id     bytea primary key,
	beat   bigint not null,              -- grows while the process lives and reaches the database
	at     timestamptz not null,         -- of the last beat, for people: nothing is decided by a clock that may be set
	host   text not null,
	pid    integer not null,
	writer integer not null,             -- the rules by which it writes
	lease  integer not null              -- ms without a beat before what it has may be taken over
) with (fillfactor = 50);

create table wf.runs (
	run    text collate "C" primary key,
	state  text not null,                -- its status; '' where that is not known
	due    bigint,                       -- when it is to be driven, unix µs by the clock of the server; NULL: not before it moves
	woken  boolean not null default false, -- what is no event of it is news for it: due stays until it is given out
	parent text collate "C",             -- of a sub-workflow: the run that it is driven with
	needs  text[] not null,              -- what a worker must have to drive it
	worker bytea                         -- that has claimed it
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
create index runs_due on wf.runs (due) where worker is null and due is not null;
create index runs_claimed on wf.runs (worker) where worker is not null;

create table wf.changes (
	x     xid8 not null default pg_current_xact_id(),
	by    bytea not null,                -- the process that wrote
	at    timestamptz not null default statement_timestamp(),
	names text[] not null
);
create index on wf.changes (x);
create index on wf.changes (at);
