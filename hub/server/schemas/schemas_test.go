package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/hub/guard"
	"wf/hub/queue"
	"wf/hub/relay"
	"wf/hub/reply"
	"wf/hub/server"
	"wf/protocol"
)

const root = "../../.."

func TestTheFilesAreWhatIsWrittenFromTheTypes(t *testing.T) {
	for name, want := range generate(root) {
		have, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Error(err)
		}
		if d := cmp.Diff(string(have), string(want)); d != "" {
			t.Errorf("%s is not what the types say: run make update (go run ./hub/server/schemas)\n− file, + types:\n%s", name, d)
		}
	}
}

// described has a value for each component that is an object.
var described = map[string]any{
	"ArchiveContents": api.ArchiveContents{}, "ArchivedRun": api.ArchivedRun{}, "BlocksRequest": api.BlockNames{}, "LackedBlocks": api.LackedBlocks{},
	"Reuse": api.Reuse{}, "Reuses": api.Reuses{}, "OwnVisit": api.OwnVisit{},
	"Accepted": api.Accepted{}, "Agent": queue.Worker{}, "Agents": relay.Agents{}, "AnswerRequest": api.Answer{}, "Artifact": api.Artifact{}, "Artifacts": api.Artifacts{}, "Attempt": api.Attempt{},
	"Alarm": protocol.Alarm{}, "Bound": api.Bound{}, "Cache": api.Cache{}, "CacheCall": api.CacheCall{}, "CallMessage": protocol.CallMessage{}, "CancelRequest": api.Cancel{},
	"Checked": protocol.Checked{}, "Choice": protocol.Choice{}, "Code": api.Code{}, "Command": api.Command{}, "Compaction": api.Compaction{},
	"Cost": api.Cost{}, "CostRow": api.CostRow{KnownUSD: "0"}, "Definition": api.Definition{}, "Diff": api.VisitDiff{}, "Error": reply.Failure{}, "Explanation": api.Explanation{}, "RunExplanation": api.RunExplanation{}, "Routing": api.Routing{}, "OpenStep": api.OpenStep{}, "Cause": api.Cause{},
	"Failure": protocol.ErrorInfo{}, "Finding": protocol.Finding{}, "ForkRequest": api.Fork{}, "GitState": protocol.GitState{}, "Health": server.Health{}, "Ready": server.Ready{},
	"Imported": api.Imported{}, "MemoryChange": api.MemoryChange{}, "MemoryItem": api.MemoryItem{}, "MemoryScopes": api.MemoryScopes{},
	"MemoryScope": api.MemoryScope{}, "Memories": api.Memories{}, "OneMemory": api.OneMemory{}, "MemoryPlace": protocol.MemoryPlace{},
	"Remembered": api.Remembered{}, "RememberRequest": api.Remember{}, "Reindexed": api.Reindexed{}, "ReindexRequest": api.Reindex{},
	"Recalled": api.Recalled{}, "RecallRequest": api.Recall{}, "MemoriesChanged": api.MemoriesChanged{}, "ChangeMemoriesRequest": api.MemoryChanges{},
	"Task": api.Task{}, "RunTask": api.RunTask{Task: &api.Task{}}, "Note": api.Note{}, "TaskList": api.TaskList{},
	"Info": server.Info{}, "Job": queue.Entry{}, "Login": guard.Login{}, "LoginRequest": guard.LoginRequest{}, "FanTally": api.FanTally{}, "ForkPoint": api.ForkPoint{}, "Mend": api.Mend{},
	"Message": protocol.Message{}, "MessageRequest": api.Message{}, "Messages": api.Messages{}, "NamedTemplate": protocol.NamedTemplate{},
	"ParentRun": protocol.ParentRun{}, "Queue": relay.Queue{}, "Queued": relay.Queued{}, "ResumeRequest": api.Resume{}, "Trigger": protocol.Trigger{}, "Role": protocol.RoleEntered{},
	"RowUsage": api.RowUsage{}, "NotificationList": api.NotificationList{}, "Notification": api.Notification{}, "Sink": api.Sink{}, "RetryNotificationsRequest": api.RetryNotifications{}, "NotificationsRetried": api.NotificationsRetried{},
	"Deletions": api.Deletions{}, "Table": api.Table{}, "TableColumn": api.TableColumn{}, "TableHead": api.TableHead{}, "TableList": api.TableList{}, "TableRow": api.TableRow{}, "Deletion": api.Deletion{}, "Stdin": protocol.Stdin{}, "Deleted": api.Deleted{}, "CleanupFailed": protocol.CleanupFailed{}, "Holder": api.Holder{}, "CausedBy": protocol.CausedBy{}, "QueuePlace": api.QueuePlace{}, "Run": api.Run{}, "RunDiff": api.Diff{}, "RunInfo": api.RunInfo{}, "RunRow": api.Row{}, "Runs": api.Page{}, "Hit": api.Hit{}, "Searched": api.Searched{},
	"Look": api.Look{}, "Looks": api.Looks{}, "StepFile": api.StepFile{}, "StepFiles": api.StepFiles{}, "Seam": api.Seam{}, "StartRequest": api.Start{}, "Started": api.Started{}, "Step": api.RunStep{Step: &api.Step{}}, "StepDiff": api.StepDiff{},
	"StepView": api.Step{}, "Term": api.Term{}, "Timing": api.Timing{}, "Tried": api.Tried{}, "Usage": protocol.UsageSum{}, "Verify": protocol.Report{},
	"Waiting": api.Waiting{}, "WayTaken": protocol.WayTaken{}, "Why": protocol.Error{}, "Workflow": api.Workflow{}, "Workflows": server.Workflows{},
}

// What encoding/json writes is what is described: of an empty value the required fields, of a full
// one all of them.
func TestTheSchemasHaveTheFieldsThatAreSent(t *testing.T) {
	text, err := relay.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Required   []string
				Properties map[string]struct{ Type, OneOf any }
			}
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for name, s := range doc.Components.Schemas {
		if s.Properties == nil {
			continue
		}
		v, ok := described[name]
		if !ok {
			t.Errorf("%s: add a value of its type to described in this test", name)
			continue
		}
		empty, full := reflect.New(reflect.TypeOf(v)).Elem(), reflect.New(reflect.TypeOf(v)).Elem()
		empty.Set(reflect.ValueOf(v))
		fill(full)
		if d := cmp.Diff(keys(t, empty), slices.Sorted(slices.Values(s.Required))); d != "" {
			t.Errorf("%s: − always sent, + required:\n%s", name, d)
		}
		properties := slices.Sorted(maps.Keys(s.Properties))
		if d := cmp.Diff(keys(t, full), properties); d != "" {
			t.Errorf("%s: − sent, + described:\n%s", name, d)
		}
	}
	for name := range described {
		if _, ok := doc.Components.Schemas[name]; !ok {
			t.Errorf("%s is described no more", name)
		}
	}
}

// keys are the fields of a value as JSON, sorted; nil for none.
func keys(t *testing.T, v reflect.Value) []string {
	t.Helper()
	b, err := json.Marshal(v.Addr().Interface())
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(m))
}

// fill gives every field a value that is not left out.
func fill(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte("{}"))
		return
	case v.Type() == reflect.TypeFor[json.Number]():
		v.SetString("1")
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() && v.Type().Field(i).Tag.Get("json") != "-" {
				fill(v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		item := reflect.New(v.Type().Elem()).Elem()
		fill(item)
		v.SetMapIndex(reflect.Zero(v.Type().Key()), item)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	}
}
