package protocol

// EventType names the type of each data.
func (RunStarted) EventType() EventType      { return EvRunStarted }
func (StepStarted) EventType() EventType     { return EvStepStarted }
func (PromptSent) EventType() EventType      { return EvPrompt }
func (Thinking) EventType() EventType        { return EvThinking }
func (TextSaid) EventType() EventType        { return EvText }
func (ToolCall) EventType() EventType        { return EvToolCall }
func (ToolResult) EventType() EventType      { return EvToolResult }
func (Held) EventType() EventType            { return EvHeld }
func (Released) EventType() EventType        { return EvReleased }
func (Usage) EventType() EventType           { return EvUsage }
func (AttemptFailed) EventType() EventType   { return EvAttemptFailed }
func (StepCompleted) EventType() EventType   { return EvStepCompleted }
func (WaitingFor) EventType() EventType      { return EvWaiting }
func (Answered) EventType() EventType        { return EvAnswered }
func (MessageIn) EventType() EventType       { return EvMessage }
func (TimerFired) EventType() EventType      { return EvTimerFired }
func (Reminded) EventType() EventType        { return EvReminded }
func (Escalated) EventType() EventType       { return EvEscalated }
func (Approval) EventType() EventType        { return EvApproval }
func (SandboxTier) EventType() EventType     { return EvSandbox }
func (SuspendedBy) EventType() EventType     { return EvSuspended }
func (ResumedBy) EventType() EventType       { return EvResumed }
func (LimitReached) EventType() EventType    { return EvLimitReached }
func (LimitChanged) EventType() EventType    { return EvLimitChanged }
func (ModelFallback) EventType() EventType   { return EvModelFallback }
func (Correction) EventType() EventType      { return EvCorrection }
func (Compacted) EventType() EventType       { return EvCompacted }
func (Forked) EventType() EventType          { return EvForked }
func (CompactionAsked) EventType() EventType { return EvCompactionAsked }
func (CancelledBy) EventType() EventType     { return EvCancelled }
func (Finished) EventType() EventType        { return EvDone }
func (QueuedFor) EventType() EventType       { return EvQueued }
func (AdmittedTo) EventType() EventType      { return EvAdmitted }
func (GroupWaiting) EventType() EventType    { return EvGroupWaiting }
func (GroupEntered) EventType() EventType    { return EvGroupEntered }
func (GroupLeft) EventType() EventType       { return EvGroupLeft }
func (Closing) EventType() EventType         { return EvClosing }
func (CancelAsked) EventType() EventType     { return EvCancelAsked }
func (ClosingSkipped) EventType() EventType  { return EvClosingSkipped }
func (FilesTracked) EventType() EventType    { return EvFilesTracked }
func (FilesAt) EventType() EventType         { return EvFilesAt }

// EventType names the type that a CompactionDraft is stored as.
func (CompactionDraft) EventType() EventType { return EvCompacted }
