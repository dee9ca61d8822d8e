-- What the process has of all that runs need, as it asks for those that are due; {}: it asks for none.
alter table wf.workers add column has text[] not null default '{}';
-- The machine whose files the run works in, where it may go on with a copy of them once no process is there.
alter table wf.runs add column home text collate "C";
-- By which runs are counted; '' for one that has not moved since.
alter table wf.runs add column workflow text not null default '';
