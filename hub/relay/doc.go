// Package relay connects workers with the clients that see and start runs, without knowing what is
// in them: workers dial out to a hub, and the hub passes on what is asked.
//
//	client ──HTTP, WebSocket──► Hub ◄──WebSocket, yamux── Worker ──► its ordinary http.Handler
//	                             │
//	                             └── queue, registry, pointers; no content
//
// # Words
//
//	link      the connection of a worker to the hub: a WebSocket on which yamux carries streams
//	control   the first stream of a link, opened by the worker: messages as lines of JSON
//	claim     a worker says that it has a run, and how far it is
//	grace period
//	          the time after the start of a hub in which workers that it does not know may connect
//
// # The life of a link
//
// The worker dials, opens the control stream and says register, its runs, ready; then a
// heartbeat every few seconds, and what changed. The hub opens a stream for each request and
// speaks plain HTTP on it. A worker that is not heard of for a TTL is cut off. It dials again
// for ever.
//
// # The life of a job
//
// POST /v1/runs at the hub puts an id into the queue, with the body sealed to the workers that have the
// workflow (package seal). One of them gets a lease, and the box with the number of the lease; before it starts
// anything it asks the hub whether the lease holds. When the run has its first event the
// pointer is written, and then the job is done. The id of the run is made of that of the job,
// so what was started unheard is found, not started again.
//
// # Several hubs
//
// Hubs that share a queue serve one fleet: a worker has a link to each, with one id and one instance. What a hub knows of its
// links alone differs: which workers it can ask. A worker that is connected elsewhere is not away: its runs stay its own, and
// another process does not get its id. A job that the worker says it has begun is done, whichever hub gave it.
//
// # What is kept
//
// Ids, names of workflows, states, times and CIDs, and what only workers can open. Bodies, frames and answers pass through
// memory. A hub that is restarted asks for what it forgot: workers register, clients go on from
// their cursors, submitters submit again with the same id.
package relay
