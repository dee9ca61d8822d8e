package cas

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"wf/protocol"
)

// pageField is a field as docs/format.md describes it.
type pageField struct {
	typ                string // of IPLD schema, such as String, [&Any] or {String:Input}
	optional, nullable bool
}

// fields are those of a record, or of the data of an event.
type fields map[string]pageField

// publishedFormat is docs/format.md, read.
type publishedFormat struct {
	types  map[string]fields
	events map[string]fields // by event type
	docs   map[string]string // by event type
}

var (
	schemaType  = regexp.MustCompile(`(?s)type (\w+) struct \{[^\n]*\n(.*?)\n\}`)
	schemaField = regexp.MustCompile(`(?m)^  (\w+) (optional )?(nullable )?(\S+)`)
	eventRow    = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| `([^`]+)`( and origin)?.* \\| (.*) \\|$")
	rowField    = regexp.MustCompile(`(\w+)(?:: (optional )?(nullable )?([^,]+))?(?:, |$)`)
)

func readFormat(t *testing.T) publishedFormat {
	t.Helper()
	page, err := os.ReadFile("../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	f := publishedFormat{types: map[string]fields{}, events: map[string]fields{}, docs: map[string]string{}}
	for _, m := range schemaType.FindAllStringSubmatch(string(page), -1) {
		f.types[m[1]] = fields{}
		for _, l := range schemaField.FindAllStringSubmatch(m[2], -1) {
			f.types[m[1]][l[1]] = pageField{l[4], l[2] != "", l[3] != ""}
		}
	}
	origin := regexp.MustCompile("Origin is `([^`]+)`").FindStringSubmatch(string(page))
	if origin == nil {
		t.Fatal("the page does not say what the origin of a memory is")
	}
	for _, m := range eventRow.FindAllStringSubmatch(string(page), -1) {
		data, ok := f.types[m[2]]
		if !ok {
			data = rowFields(strings.Trim(m[2], "{}"))
		}
		if m[3] != "" {
			maps.Copy(data, rowFields(origin[1]))
		}
		f.events[m[1]], f.docs[m[1]] = data, m[4]
	}
	return f
}

// rowFields reads "by, source: String, text: optional Text": a name without a type has that of
// the next one.
func rowFields(row string) fields {
	out := fields{}
	var typeless []string
	for _, m := range rowField.FindAllStringSubmatch(row, -1) {
		if typeless = append(typeless, m[1]); m[4] == "" {
			continue
		}
		for _, name := range typeless {
			out[name] = pageField{m[4], m[2] != "", m[3] != ""}
		}
		typeless = nil
	}
	return out
}

// written is every record and every data of an event. The page has these and no others.
var written = map[string]any{
	"Chunks": protocol.Chunks{}, "Archive": protocol.Archive{}, "ArchivedRun": protocol.ArchivedRun{}, "Start": protocol.Start{}, "StepRecord": protocol.StepRecord{}, "Item": protocol.Item{},
	"Compaction": protocol.Compaction{}, "Result": protocol.Result{}, "Workflow": protocol.Workflow{}, "Input": protocol.Input{},
	"Limits": protocol.Limits{}, "Role": protocol.Role{}, "Edge": protocol.Edge{}, "NamedTemplate": protocol.NamedTemplate{},
	"MCPServer": protocol.MCPServer{}, "MCPValue": protocol.MCPValue{}, "Schedule": protocol.Schedule{},
	"Choice": protocol.Choice{}, "Wait": protocol.Wait{}, "Stdin": protocol.Stdin{}, "Asking": protocol.Asking{}, "Retry": protocol.Retry{}, "CompactionSpec": protocol.CompactionSpec{},
	"TaskSpec": protocol.TaskSpec{}, "MemorySpec": protocol.MemorySpec{}, "Event": protocol.Event{},
	"RunStarted": protocol.RunStarted{}, "ParentRun": protocol.ParentRun{}, "StepStarted": protocol.StepStarted{},
	"PromptSent": protocol.PromptSent{}, "Usage": protocol.Usage{}, "ChildCall": protocol.ChildCall{}, "ErrorInfo": protocol.ErrorInfo{},
	"StepCompleted": protocol.StepCompleted{}, "GitState": protocol.GitState{}, "Forked": protocol.Forked{}, "Place": protocol.MemoryPlace{},
	"Appeared": protocol.Appeared{}, "Found": protocol.Found{}, "Sink": protocol.Sink{}, "CausedBy": protocol.CausedBy{}, "Alarm": protocol.Alarm{}, "Webhook": protocol.Webhook{}, "Trigger": protocol.Trigger{}, "Tombstone": protocol.Tombstone{},
	"Concurrency": protocol.Concurrency{},
	"Artifacts":   protocol.Artifacts{},
	"OwnFiles":    protocol.OwnFiles{}, "OwnWorkspace": protocol.OwnWorkspace{}, "Merge": protocol.Merge{},
	"Caching": protocol.Caching{}, "Memo": protocol.Memo{}, "MemoChange": protocol.MemoChange{}, "MemoDigest": protocol.MemoDigest{}, "MemoBefore": protocol.MemoBefore{}, "MemoAfter": protocol.MemoAfter{},
	"Group":        protocol.Group{},
	"Workspace":    protocol.Workspace{},
	"FilesKept":    protocol.FilesKept{},
	"FilesRestore": protocol.FilesRestore{},
	"ChatMoved":    protocol.ChatMoved{},
	"Slot":         protocol.Slot{},
	"Use":          protocol.Use{},
	"Claim":        protocol.Claim{},
}

// Whatever is written, with all fields set and with none, has the fields of docs/format.md, all
// that are not optional, and values of their types.
func TestThePublishedFormatIsWhatIsWritten(t *testing.T) {
	page := readFormat(t)
	for name, v := range written {
		page.holds(t, name, page.types[name], v)
	}
	for name := range page.types {
		if _, ok := written[name]; !ok {
			t.Errorf("the page has a type %s that the test does not know", name)
		}
	}
	for _, e := range protocol.Events() {
		_, data := e.New()
		if data == nil {
			continue // reserved
		}
		typ := string(e.Type)
		page.holds(t, typ, page.events[typ], data())
		delete(page.events, typ)
		if page.docs[typ] != e.Doc {
			t.Errorf("%s: the page says %q, the program %q", typ, page.docs[typ], e.Doc)
		}
	}
	for typ := range page.events {
		t.Errorf("the page has an event %s that the program does not know", typ)
	}
}

// holds encodes v, empty and full, and holds what was written against its description.
func (p publishedFormat) holds(t *testing.T, name string, want fields, v any) {
	if want == nil {
		t.Errorf("the page lacks %s", name)
		return
	}
	full := reflect.New(reflect.TypeOf(v)).Elem()
	fill(full)
	for how, v := range map[string]any{"empty": v, "full": full.Interface()} {
		raw, err := encMode.Marshal(v)
		if err != nil {
			t.Fatalf("%s, %s: %v", name, how, err)
		}
		var have map[string]any
		if err := decMode.Unmarshal(raw, &have); err != nil {
			t.Fatalf("%s, %s: %v", name, how, err)
		}
		for _, fault := range p.record(have, want, how == "empty") {
			t.Errorf("%s, %s: %s", name, how, fault)
		}
		if how == "full" && len(have) < len(want) {
			t.Errorf("%s: the page has fields that are not written: %d, not %d", name, len(want), len(have))
		}
	}
}

// fill sets everything below v; a Text is text.
func fill(v reflect.Value) {
	switch v.Interface().(type) {
	case protocol.Link:
		v.Set(reflect.ValueOf(Raw([]byte("linked")).Link))
		return
	case protocol.Text:
		v.Set(reflect.ValueOf(protocol.NewText("said")))
		return
	case cbor.RawMessage:
		v.SetBytes([]byte{0xa0})
		return
	case protocol.JSON:
		v.SetBytes([]byte(`{}`))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("name").Convert(v.Type().Key()), value)
	case reflect.String:
		v.SetString("said")
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.SetInt(7)
	}
}

// record lists where a map that was written departs from the page. In an empty one every link,
// and the data of an event, is null.
func (p publishedFormat) record(have map[string]any, want fields, empty bool) (faults []string) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		f := want[name]
		v, there := have[name]
		switch {
		case !there && !f.optional:
			faults = append(faults, name+" is not written")
		case !there, v == nil && (f.nullable || f.typ == "Text" || empty && (f.typ[0] == '&' || f.typ == "{String:Any}" || f.typ[0] == '[')):
		case empty && f.optional:
			faults = append(faults, name+" is written though it is empty")
		default:
			for _, fault := range p.value(v, f.typ, empty) {
				faults = append(faults, name+fault)
			}
		}
	}
	for name := range have {
		if _, ok := want[name]; !ok {
			faults = append(faults, name+" is not on the page")
		}
	}
	return faults
}

// value lists where a value departs from its type.
func (p publishedFormat) value(v any, typ string, empty bool) (faults []string) {
	ok := false
	switch {
	case typ == "Any":
		ok = true
	case typ == "String" || typ == "Text":
		_, ok = v.(string)
	case typ == "Bool":
		_, ok = v.(bool)
	case typ == "Int":
		ok = reflect.ValueOf(v).CanInt() || reflect.ValueOf(v).CanUint()
	case typ[0] == '&':
		tag, is := v.(cbor.Tag)
		ok = is && tag.Number == 42
	case typ[0] == '[':
		list, is := v.([]any)
		for _, e := range list {
			faults = append(faults, p.value(e, typ[1:len(typ)-1], empty)...)
		}
		ok = is
	case strings.HasPrefix(typ, "{String:"):
		m, is := v.(map[string]any)
		for _, e := range m {
			faults = append(faults, p.value(e, strings.TrimSuffix(strings.TrimPrefix(typ, "{String:"), "}"), empty)...)
		}
		ok = is
	case p.types[typ] != nil:
		m, is := v.(map[string]any)
		for _, fault := range p.record(m, p.types[typ], empty) {
			faults = append(faults, "."+fault)
		}
		ok = is
	}
	if !ok {
		return append(faults, ": written as "+reflect.TypeOf(v).String()+", the page says "+typ)
	}
	return faults
}
