package protocol

import (
	"fmt"
	"reflect"
	"strings"
)

// An EventSpec is what there is to know of an event type. All that treats events by their types
// alike (reading and writing them, putting long texts in place, the table in docs/format.md)
// follows from the list of them: a new type is added there, and nowhere else.
type EventSpec struct {
	Type   EventType
	Doc    string // what happened, on one line
	Memory bool   // of the journal of a memory, not of a run
	Sink   bool   // of the journal of a sink of notifications, not of a run

	data  reflect.Type    // nil for a type that is reserved
	texts map[string]bool // CBOR keys of the fields that are Texts
}

// events are all types that are stored, in the order in which they are described.
var events = []EventSpec{
	event[RunStarted]("the run begins"),
	event[QueuedFor]("the run waits for a slot of its concurrency group"),
	event[AdmittedTo]("the run holds a slot of its concurrency group"),
	event[FilesTracked]("whether the files of the workspace are recorded"),
	event[StepStarted]("a visit is about to act: the intent, durable before it"),
	event[Reused]("an earlier result takes the place of performing a visit: durable before files change"),
	event[NotReused]("a visit of a role that reuses results is performed, and why"),
	event[NotStored]("the result of a visit of such a role is not kept for others, and why"),
	event[PromptSent]("before the first model request of a visit"),
	event[Thinking]("what a model reasoned"),
	event[TextSaid]("what a model said in one turn"),
	event[ToolCall]("a model calls a tool: durable before the tool runs"),
	event[ToolResult]("what a tool answered"),
	event[Held]("a visit is kept back by the limits of a provider, or by its outage"),
	event[Released]("a visit that was held goes on"),
	event[Usage]("what one model call used"),
	event[GroupWaiting]("an attempt waits for a slot of the concurrency group of its role"),
	event[GroupEntered]("an attempt holds a slot of the concurrency group of its role"),
	event[GroupLeft]("an attempt that waits for something else gave its slot back"),
	event[FilesAt]("what files the workspace held: before and after an attempt, and after a tool call that may write"),
	event[FilesLaid]("the run goes on in a copy of its files, on another machine"),
	event[AttemptFailed]("one try of a visit did not work"),
	event[StepCompleted]("a visit ended, well or for good"),
	event[WaitingFor]("a visit waits, for an answer or until a time"),
	event[Answered]("somebody answered a visit that waits"),
	event[MessageIn]("a message came from outside; source is what its sender says, by is the user or the name of the token that sent it"),
	event[TimerFired]("the time came that a visit waited for"),
	event[Reminded]("a question that waits was called to mind"),
	event[Escalated]("a question was not answered in time and is put to further people"),
	event[Approval]("a tool call was allowed or denied"),
	event[SandboxTier]("what confines the commands of a visit; `met` behind a command that failed as at a wall, or was refused an endpoint"),
	event[OwnCopy]("a visit has a copy of the workspace for itself"),
	event[SuspendedBy]("the run stops until it is resumed"),
	event[ResumedBy]("the run goes on"),
	event[LimitReached]("a limit of the run was reached"),
	event[LimitChanged]("a limit of the run was changed"),
	event[ModelFallback]("another model answered"),
	event[Correction]("an answer did not fit the declared output, and the model was told why"),
	event[Compacted]("a summary took the place of older messages"),
	event[CompactionAsked]("the next visit of an agent begins with a compaction"),
	event[TaskStarted]("a task begins"),
	event[TaskStateUpdated]("an agent noted how its task stands"),
	event[TaskWaitingOn]("a task asks a person"),
	event[TaskDone]("a task ended"),
	event[MemoryChanged]("a memory was changed"),
	event[Forked]("what follows belongs to a fork"),
	event[CancelledBy]("the run was cancelled"),
	event[Closing]("the verdict of the run stands, and its always roles run before the last event"),
	event[CancelAsked]("the run was cancelled while it closes by itself: its always roles go on"),
	event[ClosingSkipped]("the always roles that have not ended are skipped"),
	event[Finished]("the run ended"),
	{Type: EvRedacted, Doc: "reserved: a reader keeps and ignores it"},

	ofMemory(event[Remembered]("something is remembered")),
	ofMemory(event[Edited]("a memory was changed")),
	ofMemory(event[Pinned]("a memory was pinned")),
	ofMemory(event[Unpinned]("a memory is pinned no more")),
	ofMemory(event[Tagged]("the tags of a memory were replaced")),
	ofMemory(event[Removed]("a memory was removed: a tombstone")),
	ofMemory(event[Indexed]("the memories are indexed by another model")),

	ofSink(event[SinkOpened]("a sink takes notifications from now on")),
	ofSink(event[CursorMoved]("events of runs were looked at, and fire nothing")),
	ofSink(event[DeliveryDue]("a notification is to be delivered: durable before it is sent")),
	ofSink(event[Delivered]("the receiver has taken a notification")),
	ofSink(event[DeliveryFailed]("an attempt to deliver did not work")),
	ofSink(event[DeliveryDead]("the attempts have ended")),
	ofSink(event[DeliveryRevived]("a person has the attempts begin again")),
}

var eventSpecs = func() map[string]*EventSpec {
	m := make(map[string]*EventSpec, len(events))
	for i := range events {
		m[string(events[i].Type)] = &events[i]
	}
	return m
}()

func event[T Data](doc string) EventSpec {
	var zero T
	t := reflect.TypeFor[T]()
	s := EventSpec{Type: zero.EventType(), Doc: doc, data: t, texts: map[string]bool{}}
	for i := range t.NumField() {
		if f := t.Field(i); f.Type == textType {
			name, _, _ := strings.Cut(f.Tag.Get("cbor"), ",")
			s.texts[name] = true
		}
	}
	return s
}

func ofMemory(s EventSpec) EventSpec {
	s.Memory = true
	return s
}

func ofSink(s EventSpec) EventSpec {
	s.Sink = true
	return s
}

var textType = reflect.TypeFor[Text]()

// Events lists the types of stored events.
func Events() []EventSpec { return append([]EventSpec(nil), events...) }

// EventNamed finds an event type by its name; nil for one that this binary does not know.
func EventNamed(name []byte) *EventSpec { return eventSpecs[string(name)] }

// Spec is what there is to know of the type of an event; nil for a type that this binary does not
// know.
func (t EventType) Spec() *EventSpec { return eventSpecs[string(t)] }

// New makes data of the type, all zero, and returns a pointer to it. read fills it in, and data
// gives it as it travels, by value. Both are nil for a type that is reserved.
func (s *EventSpec) New() (read any, data func() Data) {
	if s.data == nil {
		return nil, nil
	}
	p := reflect.New(s.data)
	return p.Interface(), func() Data { return p.Elem().Interface().(Data) }
}

// AnyData reads the data of an event of whatever type; nil for a type that this binary does not know, or
// that is reserved. Long texts are still links. An error wraps ErrInvalidBlock.
func (e *Event) AnyData() (Data, error) {
	spec := e.Type.Spec()
	if spec == nil || spec.data == nil {
		return nil, nil
	}
	read, data := spec.New()
	if err := recordIn.Unmarshal(e.Data, read); err != nil {
		return nil, fmt.Errorf("event %d, %s: decode %T: %w: %w", e.Seq, e.Type, read, ErrInvalidBlock, err)
	}
	return data(), nil
}

// TextKey reports whether key is one of the data under which a Text stands: a string, or a link
// to a long one.
func (s *EventSpec) TextKey(key []byte) bool { return s != nil && s.texts[string(key)] }

// HasTexts reports whether data of the type may hold a Text.
func (s *EventSpec) HasTexts() bool { return s != nil && len(s.texts) > 0 }

// Texts are the fields of data that may be long: the writer moves the long ones to blocks. data
// is a pointer to a struct.
func Texts(data any) []*Text {
	var out []*Text
	for v, i := reflect.ValueOf(data).Elem(), 0; i < v.NumField(); i++ {
		if f := v.Field(i); f.Type() == textType {
			out = append(out, f.Addr().Interface().(*Text))
		}
	}
	return out
}
