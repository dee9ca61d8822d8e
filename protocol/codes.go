package protocol

// A Remedy is what a client does about an error.
type Remedy string

// The remedies.
const (
	Again Remedy = "again" // the request is right: the same one, after a pause
	Look  Remedy = "look"  // things are not as the client thought: it reads them anew, and decides
	Mend  Remedy = "mend"  // the request has to be another one
	Owner Remedy = "owner" // a person at the server has to do something first
)

// A Code is what a server means by the code of an error: a row of the one table of them.
type Code struct {
	Name   string
	Status int // over HTTP
	Remedy Remedy
	Do     string // for clients of every kind; what to type in a terminal is the Hint of an Error
}

const describes = "GET /v1/openapi.json describes every request"

// codes are all that a server answers with, by status. A code that has been published keeps its name and
// status; new ones may be added.
var codes = [...]Code{
	{"bad_request", 400, Mend, describes},
	{"usage", 400, Mend, describes},
	{"bad_cursor", 400, Mend, "a cursor is the seq of the last event that the client holds"},

	{"unauthorized", 401, Mend, "send a valid token as Authorization: Bearer, or log in"},
	{"forbidden", 403, Mend, "use a token with the scope that is named"},
	{"untrusted", 403, Owner, "the user of the server decides whether to trust it"},
	{"mcp_untrusted", 403, Owner, "the user of the server decides whether to trust the program"},

	{"not_found", 404, Mend, describes},
	{"unknown_session", 404, Mend, "GET /v1/runs lists the runs"},
	{"unknown_step", 404, Mend, "GET /v1/runs/{id} lists the steps of a run"},
	{"unknown_job", 404, Mend, "submit it again with the same request id: that is safe"},
	{"method_not_allowed", 405, Mend, describes},
	{"run_deleted", 410, Mend, "its id stays taken; to do the same again, start it under another request id"},

	{"unknown_artifact", 404, Mend, "GET /v1/runs/{id}/steps/{step}/artifacts lists what a step keeps"},
	{"copy_gone", 409, Mend, "fork the run before the step, which then begins anew"},
	{"file_exists", 409, Mend, "a file is there already; choose another directory, or replace it"},
	{"worker_lacks", 409, Owner, "the user of the server starts a worker that has it"},
	{"cache_miss", 409, Mend, "start the run without offline to have it performed"},
	{"future_cursor", 409, Look, "ask again with lastCid, or from 0"},
	{"head_moved", 409, Again, "ask again"},
	{"fenced", 409, Look, "it goes on in another process: follow it"},
	{"group_busy", 409, Again, "wait until the run that holds the group has ended, or cancel that run"},
	{"run_live", 409, Look, "it goes on already: follow it"},
	{"waiting", 409, Look, "answer what it waits for"},
	{"not_waiting", 409, Look, "read what the run waits for"},
	{"not_running", 409, Look, "read what the run waits for"},
	{"run_final", 409, Look, "fork it to go on from any of its steps"},
	{"run_not_final", 409, Look, "cancel it first"},
	{"job_begun", 409, Look, "cancel the run that it becomes"},
	{"agent_connected", 409, Look, "stop the worker first: it would be back at once"},
	{"agent_taken", 409, Owner, "stop the other process, or give this one an id of its own"},
	{"lease_lost", 409, Look, "start nothing: the job may be another worker's"},
	{"pointer_swapped", 409, Again, "read it again"},
	{"ambiguous_ref", 409, Mend, "name one of those that fit"},
	{"request_reused", 409, Mend, "send this request with an id of its own"},
	{"caused_too_deep", 409, Mend, "look at what the notifications of these runs start"},
	{"job_dead", 409, Mend, "see why, then submit it with another request id"},
	{"body_gone", 409, Mend, "submit it again with the same request id"},
	{"embedding_model", 409, Mend, "index the memory anew with the other model, or ask with its own"},
	{"embedding_dimension", 409, Owner, "index the memory anew, or name the model that made the index"},
	{"foreign_run", 409, Owner, "the user of the store lets it go on there"},
	{"rolled_back", 409, Owner, "the user of the store puts the newer copy back, or accepts this one"},
	{"store_is_database", 409, Mend, "use what the database has for it"},
	{"store_held", 409, Owner, "the user of the store lets its runs go on there"},

	{"too_large", 413, Mend, "send less"},
	{"unsupported_media_type", 415, Mend, "send the body in the form that is named"},
	{"misdirected", 421, Owner, "use an address that the server prints when it starts"},
	{"invalid_workflow", 422, Mend, "the message says what is wrong with it"},
	{"invalid_inputs", 422, Mend, "GET /v1/workflows has the schema of the inputs"},
	{"invalid_answer", 422, Mend, "GET /v1/runs/{id} has the question, with its choices and the schema of its form"},
	{"unknown_price", 422, Mend, "set the price in the config of the server, or bound the run by tokens"},
	{"memory_refused", 422, Mend, "the message says what the memory takes"},
	{"upgrade_required", 426, Mend, "connect with a client of WebSockets"},
	{"rate_limited", 429, Again, "wait, and try again"},

	{"internal", 500, Again, "the log of the server says more"},
	{"sealed", 500, Again, "submit the job again with the same request id"},
	{"corrupt", 500, Owner, "have the store verified"},
	{"invalid_block", 500, Owner, "have the store verified"},
	{"verify_failed", 500, Owner, "have the store verified"},
	{"gap", 500, Owner, "have the store verified"},
	{"store_unreadable", 500, Owner, "the log of the server says more"},
	{"store_newer", 500, Owner, "install the version that wrote the store at the server"},
	{"store_read_only", 500, Owner, "let the server write its store"},
	{"invalid_config", 500, Owner, "put the config of the server right"},
	{"workspace_unseen", 500, Owner, "the user of the server gives back the modes of the part of the workspace that is named"},
	{"left_behind", 500, Owner, "the user of the server removes what a command left in the workspace, before anybody uses git there"},
	{"sandbox_unavailable", 500, Owner, "the machine of the server lacks what confines commands"},
	{"embedding_table", 500, Owner, "index the memory anew"},
	{"unknown_semantics", 501, Owner, "install a newer version at the server"},
	{"bad_answer", 502, Owner, "install the same version at the worker and at the hub"},
	{"embedding_answer", 502, Owner, "see whether the address is that of an embedding server"},
	{"store_busy", 503, Again, "ask again, after a pause"},
	{"store_unreachable", 503, Again, "ask again, after a pause: nothing acknowledged is lost"},
	{"agent_unavailable", 503, Again, "ask again, after a pause: it is answered when the worker is back"},
	{"agent_moved", 503, Again, "ask again"},
	{"too_slow", 503, Again, "connect again with the last seq: nothing is lost"},
	{"shutting_down", 503, Again, "ask again, after a pause; a stream with the last seq"},
	{"serve_stopped", 503, Again, "ask again, after a pause"},
	{"queue_closed", 503, Again, "ask again, after a pause"},
	{"no_worker", 503, Again, "start a worker of this version that has the workflow"},
	{"model_unavailable", 503, Owner, "choose a model that the server has, and for which it has a key"},
	{"disk_full", 507, Owner, "free some space at the server: nothing acknowledged is lost"},
}

// Codes are those with which a server answers.
func Codes() []Code { return codes[:] }

// CodeNamed is the row of a code; of one that no server answers with it is that of ErrInternal.
func CodeNamed(name string) Code {
	var internal Code
	for _, c := range codes {
		switch c.Name {
		case name:
			return c
		case ErrInternal.Code:
			internal = c
		}
	}
	return internal
}
