package protocol

// RunStarted opens a journal. It holds no run id: forks share it.
type RunStarted struct {
	Start       Link       `cbor:"start" json:"start"`
	Source      Link       `cbor:"source" json:"source"` // raw: the YAML as it was read
	Title       string     `cbor:"title" json:"title"`
	Description Text       `cbor:"description" json:"description"`
	Type        string     `cbor:"type" json:"type"`
	Scope       string     `cbor:"scope" json:"scope"`
	Tags        []string   `cbor:"tags" json:"tags"`
	CreatedBy   string     `cbor:"created_by" json:"created_by"`
	TargetUser  string     `cbor:"target_user" json:"target_user"`
	RequestID   string     `cbor:"request_id" json:"request_id"`
	Parent      *ParentRun `cbor:"parent" json:"parent"`
	Workspace   string     `cbor:"workspace" json:"workspace"`
	Version     string     `cbor:"version" json:"version"`

	// Models overrides the models of roles for this run: role → list; "" is every role.
	Models map[string][]string `cbor:"models,omitempty" json:"models,omitempty"`
	// File is the path of the definition as it was given; relative script and workflow
	// files are found beside it.
	File string `cbor:"file,omitempty" json:"file,omitempty"`
	// Context overrides how the agents of this run see their past; "" is as their roles say.
	Context ContextMode `cbor:"context,omitempty" json:"context,omitempty"`
	// Place is the directory in which the run was started, where that is not Workspace.
	Place string `cbor:"place,omitempty" json:"place,omitempty"`
	// Sources are the YAML texts of the sub-workflows, and of theirs, by the CIDs of their definitions.
	Sources map[string]Link `cbor:"sources,omitempty" json:"sources,omitempty"`
	// AllowSecretInputs are the inputs that were let in although they may hold a secret.
	AllowSecretInputs []string `cbor:"allow_secret_inputs,omitempty" json:"allow_secret_inputs,omitempty"`
	// Trigger began the run; nil where a person or a client did.
	Trigger *Trigger `cbor:"trigger,omitempty" json:"trigger,omitempty"`
	// CausedBy is the notification that the run was started by, if it was.
	CausedBy *CausedBy `cbor:"caused_by,omitempty" json:"caused_by,omitempty"`
	// Groups are the names of the concurrency groups by role, as the inputs gave them; "" is that of the workflow.
	Groups map[string]string `cbor:"groups,omitempty" json:"groups,omitempty"`
	// Cache is what the run does about results that can be reused: "", CacheOff or CacheOffline.
	Cache string `cbor:"cache,omitempty" json:"cache,omitempty"`
	// Origin is the run whose prefixes providers may have in their caches already; "" is this run.
	Origin RunID `cbor:"origin,omitempty" json:"origin,omitempty"`
	// Trial tells the run apart from others that perform the same: it takes no results of theirs. "" is none.
	Trial string `cbor:"trial,omitempty" json:"trial,omitempty"`
	// Machine names the machine that Workspace is on, in a store of several; "" is the one that the store is on.
	Machine string `cbor:"machine,omitempty" json:"machine,omitempty"`
	// ClaimedBy is the name that a client sent, where it differs from that of its token, which is CreatedBy. It has no effect.
	ClaimedBy string `cbor:"claimed_by,omitempty" json:"claimed_by,omitempty"`
}

// StartedIn is the directory in which the run was started.
func (r RunStarted) StartedIn() string {
	if r.Place != "" {
		return r.Place
	}
	return r.Workspace
}

// ParentRun is the step of the parent that a run is the sub-workflow of.
type ParentRun struct {
	Run  RunID  `cbor:"run" json:"run"`
	Step string `cbor:"step" json:"step"`
}

// ID is the run of p; "" of nil.
func (p *ParentRun) ID() RunID {
	if p == nil {
		return ""
	}
	return p.Run
}

// SuspendedBy stops a run until wf resume.
type SuspendedBy struct {
	Reason SuspendReason `cbor:"reason" json:"reason"`
	Detail Text          `cbor:"detail" json:"detail"`
	// Code is that of the Error behind the suspension, for example model_unavailable.
	Code string `cbor:"code,omitempty" json:"code,omitempty"`
}

// RestoredCode is the code of a suspension that says that the store was restored from a backup.
const RestoredCode = "restored"

// ResumedBy goes on with a suspended run.
type ResumedBy struct {
	By string `cbor:"by" json:"by"`
}

// LimitReached is a breach; cost is in micro-dollars, duration in µs.
type LimitReached struct {
	Limit string `cbor:"limit" json:"limit"` // steps, duration, cost_usd, tokens
	Value int64  `cbor:"value" json:"value"`
	Max   int64  `cbor:"max" json:"max"`
}

// LimitChanged raises a limit.
type LimitChanged struct {
	Limit string `cbor:"limit" json:"limit"`
	Max   int64  `cbor:"max" json:"max"`
	By    string `cbor:"by" json:"by"`
}

// Forked opens the own part of a forked journal.
type Forked struct {
	Base  Link   `cbor:"base" json:"base"` // the event forked from; also prev
	Note  string `cbor:"note" json:"note"`
	By    string `cbor:"by" json:"by"`
	Start Link   `cbor:"start,omitempty,omitzero" json:"start,omitzero"` // with another definition: its Start
	// Source is the YAML of the other definition, File its path.
	Source Link   `cbor:"source,omitempty,omitzero" json:"source,omitzero"`
	File   string `cbor:"file,omitempty" json:"file,omitempty"`
	// Sources are those of its sub-workflows, as in RunStarted.
	Sources map[string]Link `cbor:"sources,omitempty" json:"sources,omitempty"`
	// Workspace is where the fork works, when it is not where the original did.
	Workspace string `cbor:"workspace,omitempty" json:"workspace,omitempty"`
	// Machine is the one that it is on, as in RunStarted.
	Machine string `cbor:"machine,omitempty" json:"machine,omitempty"`
	// Models overrides the models of roles from here on, as in RunStarted; nil leaves them.
	Models map[string][]string `cbor:"models,omitempty" json:"models,omitempty"`
	// Groups are those of the other definition, as in RunStarted.
	Groups map[string]string `cbor:"groups,omitempty" json:"groups,omitempty"`
	// Tags are added to those of the run.
	Tags []string `cbor:"tags,omitempty" json:"tags,omitempty"`
	// Origin and Trial are as in RunStarted, from here on.
	Origin RunID  `cbor:"origin,omitempty" json:"origin,omitempty"`
	Trial  string `cbor:"trial,omitempty" json:"trial,omitempty"`
	// Messages is how many of the messages that waited, the oldest first, were taken back: the fork does not have them.
	Messages int `cbor:"messages,omitempty" json:"messages,omitempty"`
}

// CancelledBy ends a run for good.
type CancelledBy struct {
	By     string `cbor:"by" json:"by"`
	Reason string `cbor:"reason" json:"reason"`
}

// Finished is the last event of a run.
type Finished struct {
	Status  RunStatus `cbor:"status" json:"status"`
	Result  Link      `cbor:"result" json:"result"`
	Kontask string    `cbor:"kontask" json:"kontask"`
}
