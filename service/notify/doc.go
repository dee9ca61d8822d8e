// Package notify tells people and programs what becomes of runs: that one waits, failed, is done, reached a limit.
//
//	journals of runs ─► scan ─► due ─► journal of the sink ─► send ─► delivered │ failed: again later │ dead
//	                                   notify/<sink>           webhook, command, desktop
//
// # Words
//
// A sink is where notifications go; a moment is what they are about; a delivery is one notification at one sink,
// with an id made of the sink, the run and the event. The journal of a sink holds how far each run was looked at,
// and what became of each delivery; it is apart from those of runs, so that forks inherit nothing of it.
//
// # Promised
//
// A delivery that is due is attempted until the receiver has taken it, at least once and under one id, for three
// days; a dead one is kept to be retried. Those of one run reach a sink in the order of its events; one that does
// not get through holds back none of other runs. Of many processes one delivers to a sink. What a store held when
// the sink was opened, what a fork shares with its origin, and runs that came from elsewhere fire nothing.
//
// # Not promised
//
// That nothing arrives twice: a process may end between the answer of a receiver and the note of it. An order
// between runs.
package notify
