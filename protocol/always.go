package protocol

// What a workflow says under always: roles that run when the verdict of a run stands, before its last event.

// AlwaysMax is how many roles a workflow may name under always, and how many attempts they have together in a run.
const AlwaysMax = 10

// ClosingTime is how long the always roles of a run may take, in µs of active time.
const ClosingTime = 5 * 60 * 1_000_000

// Closing says that the verdict of a run stands, and that its always roles run now. It holds all of which the last event is
// made: what the roles do changes nothing of it.
type Closing struct {
	Status  RunStatus `cbor:"status" json:"status"`   // done, failed or cancelled
	Result  Link      `cbor:"result" json:"result"`   // null where cancelled
	Outputs Link      `cbor:"outputs" json:"outputs"` // those of Result
	// Code is that of the error that led to FAIL, if one did. Message is what did, or why the run was cancelled.
	Code    string `cbor:"code,omitempty" json:"code,omitempty"`
	Message Text   `cbor:"message,omitempty,omitzero" json:"message,omitzero"`
	By      string `cbor:"by,omitempty" json:"by,omitempty"` // of one that was cancelled
}

// Last is the event that ends the run.
func (c *Closing) Last() Data {
	if c.Status == Cancelled {
		return CancelledBy{By: c.By, Reason: c.Message.S}
	}
	return Finished{Status: c.Status, Result: c.Result}
}

// CancelAsked says that a run was cancelled which closes by itself: its verdict stands, and its always roles go on. The next
// one skips what is left of them.
type CancelAsked struct {
	By     string `cbor:"by" json:"by"`
	Reason string `cbor:"reason" json:"reason"`
}

// ClosingSkipped ends the closing of a run before all of its always roles have ended.
type ClosingSkipped struct {
	Code   string `cbor:"code" json:"code"` // SkippedByPerson and the others below
	By     string `cbor:"by,omitempty" json:"by,omitempty"`
	Reason string `cbor:"reason" json:"reason"`
}

// Why always roles were skipped.
const (
	SkippedByPerson = "cancelled"      // the run was cancelled while it closed
	SkippedByBudget = "closing_budget" // AlwaysMax or ClosingTime was reached
	SkippedUnready  = "cannot_begin"   // what the next one needs is not there
	SkippedForeign  = "foreign_run"    // the run came from elsewhere, and is not driven here
)

// CleanupFailed is an always role that failed or was skipped. It changes nothing of what the run concluded.
type CleanupFailed struct {
	Role    string `cbor:"role" json:"role"`
	Step    string `cbor:"step,omitempty" json:"step,omitempty"` // "" where it did not begin
	Code    string `cbor:"code" json:"code"`
	Message string `cbor:"message" json:"message"`
}

// Verdict is what always roles see of the end of the run, as run.verdict.
type Verdict struct {
	Status  RunStatus `json:"status"`
	Code    string    `json:"code"`
	Message string    `json:"message"`
	Outputs JSON      `json:"outputs"` // an object; empty unless done
}
