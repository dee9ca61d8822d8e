package protocol

// EventType names the type of each data.
func (RunStarted) EventType() EventType      { return EvRunStarted }
func (StepStarted) EventType() EventType     { return EvStepStarted }
func (PromptSent) EventType() EventType      { return EvPrompt }
func (Thinking) EventType() EventType        { return EvThinking }
func (TextSaid) EventType() EventType        { return EvText }
func (ToolCall) EventType() EventType        { return EvToolCall }
func (ToolResult) EventType() EventType      { return EvToolResult }
func (Usage) EventType() EventType           { return EvUsage }
func (AttemptFailed) EventType() EventType   { return EvAttemptFailed }
func (StepCompleted) EventType() EventType   { return EvStepCompleted }
func (WaitingFor) EventType() EventType      { return EvWaiting }
func (Answered) EventType() EventType        { return EvAnswered }
func (MessageIn) EventType() EventType       { return EvMessage }
func (TimerFired) EventType() EventType      { return EvTimerFired }
func (Approval) EventType() EventType        { return EvApproval }
func (SandboxTier) EventType() EventType     { return EvSandbox }
func (SuspendedBy) EventType() EventType     { return EvSuspended }
func (ResumedBy) EventType() EventType       { return EvResumed }
func (LimitReached) EventType() EventType    { return EvLimitReached }
func (LimitChanged) EventType() EventType    { return EvLimitChanged }
func (ModelFallback) EventType() EventType   { return EvModelFallback }
func (Compacted) EventType() EventType       { return EvCompacted }
func (Forked) EventType() EventType          { return EvForked }
func (CompactionAsked) EventType() EventType { return EvCompactionAsked }
func (CancelledBy) EventType() EventType     { return EvCancelled }
func (Finished) EventType() EventType        { return EvDone }

// Texts lists the strings that may be long.
func (d *RunStarted) Texts() []*Text  { return []*Text{&d.Description} }
func (d *StepStarted) Texts() []*Text { return []*Text{&d.EdgePrompt} }
func (d *PromptSent) Texts() []*Text  { return []*Text{&d.Params} }
func (d *Thinking) Texts() []*Text    { return []*Text{&d.Content, &d.Block} }
func (d *TextSaid) Texts() []*Text    { return []*Text{&d.Content} }
func (d *ToolCall) Texts() []*Text    { return []*Text{&d.Args} }
func (d *ToolResult) Texts() []*Text  { return []*Text{&d.Content} }
func (d *WaitingFor) Texts() []*Text  { return []*Text{&d.Question, &d.Form} }
func (d *Answered) Texts() []*Text    { return []*Text{&d.Text, &d.Fields} }
func (d *MessageIn) Texts() []*Text   { return []*Text{&d.Text} }
func (d *SuspendedBy) Texts() []*Text { return []*Text{&d.Detail} }
func (d *Compacted) Texts() []*Text   { return []*Text{&d.Summary, &d.Error} }

// EventType names the type that a CompactionDraft is stored as.
func (CompactionDraft) EventType() EventType { return EvCompacted }
