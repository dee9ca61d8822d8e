package servicetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"wf/api"
	"wf/protocol"
	"wf/service"
)

// Memory checks what a service says of memories and does to them. open gives one whose store holds none, to
// its owner.
func Memory(t *testing.T, open func(t *testing.T) api.Service) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s api.Service)
	}{
		{"a memory that was never written is empty", neverWritten},
		{"what is remembered is listed, the pinned first, then the newest", remembered},
		{"a list is read in parts that add up to it", inParts},
		{"texts of megabytes come back as they were", longTexts},
		{"what is meant is found, and by tags the newest first", recalled},
		{"changes are made together, or not at all", together},
		{"there is one anchor, and it is first", oneAnchor},
		{"what is known already is passed over", knownAlready},
		{"sums stand for texts", sums},
		{"a dump is loaded, and what is known of it is not loaded again", loaded},
		{"files are remembered piece by piece, and what changed in them again", indexed},
		{"a memory is indexed anew", reindexed},
		{"what does not fit is refused, and nothing is kept of it", refused},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

// must stops a test that cannot go on.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func neverWritten(t *testing.T, s api.Service) {
	if l := must(s.Scopes(t.Context()))(t); l.Schema != "wf.memory_scopes/v1" || l.Items == nil || len(l.Items) != 0 {
		t.Errorf("memories %+v", l)
	}
	l := must(s.Memories(t.Context(), api.MemoryQuery{Scope: "notes"}))(t)
	if d := cmp.Diff(&api.Memories{Items: []api.MemoryItem{}, Schema: "wf.memories/v1", Scope: "notes"}, l); d != "" {
		t.Error(d)
	}
	fails(t, "one of none", second(s.Memory(t.Context(), "notes", 1)), protocol.ErrMemory)
	// The user's memory has the name of the user whose process answers, however it is asked for.
	if a, b := must(s.Memories(t.Context(), api.MemoryQuery{}))(t), must(s.Memories(t.Context(), api.MemoryQuery{Scope: "user"}))(t); a.Scope != b.Scope || !strings.HasPrefix(a.Scope, "user/") {
		t.Errorf("the user's memory is %s, and %s", a.Scope, b.Scope)
	}
}

func remember(t *testing.T, s api.Service, scope string, notes ...api.Note) *api.Remembered {
	t.Helper()
	return must(s.Remember(t.Context(), api.Remember{Scope: scope, Notes: notes}))(t)
}

// column is the texts of memories.
func column(items []api.MemoryItem) []string {
	var out []string
	for _, m := range items {
		out = append(out, m.Content)
	}
	return out
}

func remembered(t *testing.T, s api.Service) {
	place := &protocol.MemoryPlace{File: "a/b.go", Line: 3, End: 9}
	got := remember(t, s, "notes", api.Note{Content: "  one\n", Tags: []string{"Deploy", "deploy", "x, y"}}, api.Note{Content: "two", Pinned: true}, api.Note{Content: "three", Place: place})
	if d := cmp.Diff(&api.Remembered{Added: 3, Head: got.Head, IDs: []protocol.Seq{1, 2, 3}, Schema: "wf.memory_remembered/v1", Scope: "notes", Seq: 3}, got); d != "" {
		t.Error(d)
	}
	if _, err := protocol.ParseLink(got.Head); err != nil {
		t.Error(err)
	}
	l := must(s.Memories(t.Context(), api.MemoryQuery{Scope: "notes"}))(t)
	want := []api.MemoryItem{{ID: 2, Content: "two", Tags: []string{}, Pinned: true}, {ID: 3, Content: "three", Tags: []string{}, Place: place}, {ID: 1, Content: "one", Tags: []string{"Deploy", "x, y"}}}
	if d := cmp.Diff(want, l.Items, cmpopts.IgnoreFields(api.MemoryItem{}, "At", "Changed", "By")); d != "" || l.Model != "lexical/ngrams-1" {
		t.Errorf("model %q\n%s", l.Model, d)
	}
	for _, m := range l.Items {
		if m.At == "" || m.At != m.Changed || m.By == "" {
			t.Errorf("memory %d was remembered at %q by %q, and changed at %q", m.ID, m.At, m.By, m.Changed)
		}
	}
	one := must(s.Memory(t.Context(), "notes", 2))(t)
	if d := cmp.Diff(&api.OneMemory{Head: got.Head, Memory: l.Items[0], Schema: "wf.memory/v1", Scope: "notes", Seq: 3}, one); d != "" {
		t.Error(d)
	}
	for _, c := range []struct {
		q    api.MemoryQuery
		want []string
	}{
		{api.MemoryQuery{Oldest: true}, []string{"one", "two", "three"}},
		{api.MemoryQuery{Pinned: true}, []string{"two"}},
		{api.MemoryQuery{Tags: []string{"DEPLOY"}}, []string{"one"}},
		{api.MemoryQuery{Tags: []string{"x, y", "z"}}, []string{"one"}},
		{api.MemoryQuery{Tags: []string{"x, y", "z"}, AllTags: true}, nil},
		{api.MemoryQuery{Part: api.Part{Limit: 2}}, []string{"two", "three"}},
	} {
		c.q.Scope = "notes"
		if d := cmp.Diff(c.want, column(must(s.Memories(t.Context(), c.q))(t).Items)); d != "" {
			t.Errorf("%+v:\n%s", c.q, d)
		}
	}
	remember(t, s, "role/fix/coder", api.Note{Content: "x", Pinned: true})
	scopes := must(s.Scopes(t.Context()))(t)
	first := api.MemoryScope{Scope: "notes", Memories: 3, Pinned: 1, Model: "lexical/ngrams-1", Head: got.Head, Seq: 3}
	if len(scopes.Items) != 2 || scopes.Items[0] != first || scopes.Items[1].Scope != "role/fix/coder" {
		t.Errorf("memories %+v", scopes.Items)
	}
}

func inParts(t *testing.T, s api.Service) {
	const n = api.MaxPart + 3
	var notes []api.Note
	for i := range n {
		notes = append(notes, api.Note{Content: fmt.Sprintf("note %d", i), Pinned: i%500 == 7})
	}
	remember(t, s, "notes", notes...)
	for _, oldest := range []bool{false, true} {
		all := must(s.Memories(t.Context(), api.MemoryQuery{Scope: "notes", Oldest: oldest}))(t)
		if len(all.Items) != n || all.Next != "" {
			t.Fatalf("%d memories of %d, then %q", len(all.Items), n, all.Next)
		}
		var parts []api.MemoryItem
		for part := (api.Part{Limit: 2500}); ; {
			l := must(s.Memories(t.Context(), api.MemoryQuery{Scope: "notes", Oldest: oldest, Part: part}))(t)
			if parts = append(parts, l.Items...); l.Next == "" {
				break
			}
			part.After = l.Next
		}
		if d := cmp.Diff(all.Items, parts); d != "" {
			t.Errorf("oldest first is %v:\n%s", oldest, d)
		}
	}
	fails(t, "behind a place that is none", second(s.Memories(t.Context(), api.MemoryQuery{Scope: "notes", Part: api.Part{After: "nowhere"}})), protocol.ErrUsage)
}

func longTexts(t *testing.T, s api.Service) {
	var want []string
	for i := range 7 { // more than one answer holds
		text := strings.Repeat(fmt.Sprintf("%d\x01", i), protocol.MemoryMax/2) // JSON writes six bytes for one of them
		want = append(want, text)
		remember(t, s, "notes", api.Note{Content: text})
	}
	if got := column(must(s.Memories(t.Context(), api.MemoryQuery{Scope: "notes", Oldest: true}))(t).Items); !cmp.Equal(want, got) {
		t.Errorf("%d texts came back of %d, or other ones", len(got), len(want))
	}
	l := must(s.Memories(t.Context(), api.MemoryQuery{Scope: "notes", Part: api.Part{Bytes: api.PartBytes}}))(t)
	if n := len(l.Items); n < 4 {
		t.Errorf("a part of 4 MiB has %d texts of 1 MiB", n)
	}
}

func recalled(t *testing.T, s api.Service) {
	remember(t, s, "notes", api.Note{Content: "The deploy key lies in the vault.", Tags: []string{"keys"}}, api.Note{Content: "Releases are cut on Tuesdays.", Tags: []string{"keys", "days"}})
	got := must(s.Recall(t.Context(), api.Recall{Scope: "notes", Text: "where is the deploy key?"}))(t)
	if d := cmp.Diff([]string{"The deploy key lies in the vault.", "Releases are cut on Tuesdays."}, column(got.Items)); d != "" {
		t.Error(d)
	}
	if got.Schema != "wf.memory_search/v1" || got.Scope != "notes" || got.Query != "where is the deploy key?" || got.Model != "lexical/ngrams-1" || got.Items[0].Distance == nil || *got.Items[0].Distance > 0.5 {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct {
		q    api.Recall
		want []string
	}{
		{api.Recall{Text: "deploy key", Limit: 1}, []string{"The deploy key lies in the vault."}},
		{api.Recall{Text: "deploy key", Tags: []string{"days"}}, []string{"Releases are cut on Tuesdays."}},
		{api.Recall{Text: "deploy key", Within: 0.0001}, nil},
		{api.Recall{Tags: []string{"keys"}}, []string{"Releases are cut on Tuesdays.", "The deploy key lies in the vault."}},
		{api.Recall{Tags: []string{"keys", "days"}, AllTags: true}, []string{"Releases are cut on Tuesdays."}},
	} {
		c.q.Scope = "notes"
		if d := cmp.Diff(c.want, column(must(s.Recall(t.Context(), c.q))(t).Items)); d != "" {
			t.Errorf("%+v:\n%s", c.q, d)
		}
	}
}

func together(t *testing.T, s api.Service) {
	remember(t, s, "notes", api.Note{Content: "one"}, api.Note{Content: "two"}, api.Note{Content: "three"})
	change := func(c ...api.MemoryChange) (*api.MemoriesChanged, error) {
		return s.ChangeMemories(t.Context(), api.MemoryChanges{Scope: "notes", Changes: c})
	}
	got := must(change(api.MemoryChange{ID: 1, Pinned: new(true)}, api.MemoryChange{ID: 2, Tags: &[]string{"b", "a"}}, api.MemoryChange{ID: 3, Remove: true}))(t)
	if d := cmp.Diff(&api.MemoriesChanged{Head: got.Head, IDs: []protocol.Seq{1, 2, 3}, Schema: "wf.memory_changed/v1", Scope: "notes", Seq: 6}, got); d != "" {
		t.Error(d)
	}
	fails(t, "a change of what was removed", second(change(api.MemoryChange{ID: 1, Pinned: new(false)}, api.MemoryChange{ID: 3, Remove: true})), protocol.ErrMemory)
	l := must(s.Memories(t.Context(), api.MemoryQuery{Scope: "notes"}))(t)
	want := []api.MemoryItem{{ID: 1, Content: "one", Tags: []string{}, Pinned: true}, {ID: 2, Content: "two", Tags: []string{"b", "a"}}}
	if d := cmp.Diff(want, l.Items, cmpopts.IgnoreFields(api.MemoryItem{}, "At", "Changed", "By")); d != "" {
		t.Error(d)
	}
	if one := must(change(api.MemoryChange{ID: 1, Pinned: new(true)}))(t); one.Head != got.Head {
		t.Errorf("what is so already was written again: %+v", one)
	}
}

func oneAnchor(t *testing.T, s api.Service) {
	remember(t, s, "notes", api.Note{Content: "pinned", Pinned: true}, api.Note{Content: "You keep the ledger.", Special: protocol.SpecialAnchor})
	got := remember(t, s, "notes", api.Note{Content: "You keep the books.", Special: protocol.SpecialAnchor})
	l := must(s.Memories(t.Context(), api.MemoryQuery{Scope: "notes"}))(t)
	if d := cmp.Diff([]string{"You keep the books.", "pinned"}, column(l.Items)); d != "" || l.Items[0].Special != protocol.SpecialAnchor || l.Items[0].ID != got.IDs[0] {
		t.Errorf("%+v\n%s", l.Items, d)
	}
	unpin := api.MemoryChanges{Scope: "notes", Changes: []api.MemoryChange{{ID: got.IDs[0], Pinned: new(false)}}}
	fails(t, "unpinning the anchor", second(s.ChangeMemories(t.Context(), unpin)), protocol.ErrMemory)
}

func knownAlready(t *testing.T, s api.Service) {
	a, b := &protocol.MemoryPlace{File: "a", Line: 1, End: 1}, &protocol.MemoryPlace{File: "b", Line: 1, End: 1}
	notes := []api.Note{{Content: "one", Tags: []string{"x"}}, {Content: "one", Tags: []string{"y"}}, {Content: "two", Place: a}, {Content: "two", Place: b}, {Content: "I", Special: protocol.SpecialAnchor}, {Content: " one ", Tags: []string{"x"}}}
	first := must(s.Remember(t.Context(), api.Remember{Scope: "notes", New: true, Notes: notes}))(t)
	if first.Added != 5 || first.IDs[5] != 0 {
		t.Errorf("%+v", first)
	}
	if again := must(s.Remember(t.Context(), api.Remember{Scope: "notes", New: true, Notes: notes}))(t); again.Added != 0 || again.Head != first.Head || len(again.IDs) != len(notes) {
		t.Errorf("%+v", again)
	}
	if third := remember(t, s, "notes", notes[0]); third.Added != 1 {
		t.Errorf("said twice on purpose: %+v", third)
	}
}

func sums(t *testing.T, s api.Service) {
	remember(t, s, "notes", api.Note{Content: "abc"})
	l := must(s.Memories(t.Context(), api.MemoryQuery{Scope: "notes", Sums: true}))(t)
	if m := l.Items[0]; m.Content != "" || m.Sum != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" { // NIST, FIPS 180-2
		t.Errorf("%+v", m)
	}
}

func loaded(t *testing.T, s api.Service) {
	var items []api.MemoryItem
	for i := range 1200 { // more than is sent at once
		items = append(items, api.MemoryItem{ID: protocol.Seq(i + 1), Content: fmt.Sprintf("note %d", i), Tags: []string{"t"}})
	}
	items = append(items, api.MemoryItem{ID: 2000, Content: "I", Special: protocol.SpecialAnchor, Pinned: true})
	bad := append(slices.Clone(items), api.MemoryItem{ID: 2001, Content: " "})
	if _, err := service.LoadMemories(t.Context(), s, "notes", "", bad); !errors.Is(err, protocol.ErrMemory) || !strings.Contains(err.Error(), "item 1202 of the dump, id 2001") {
		t.Errorf("a dump with an empty text: %v", err)
	}
	for _, want := range []service.Loaded{{Scope: "notes", Added: 1201}, {Scope: "notes", Known: 1201}} {
		if got := must(service.LoadMemories(t.Context(), s, "notes", "", items))(t); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if got := must(service.LoadMemories(t.Context(), s, "none", "", nil))(t); got != (service.Loaded{Scope: "none"}) {
		t.Errorf("an empty dump: %+v", got)
	}
}

func indexed(t *testing.T, s api.Service) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	index := func() *service.FilesIndexed {
		t.Helper()
		return must(service.IndexFiles(t.Context(), s, "code", "", dir, nil, nil))(t)
	}
	write("retry.go", "package src\n\n// attempts is how often a request is retried.\nconst attempts = 4\n")
	write("note.txt", "Nothing.\n")
	if got := index(); got.Files != 2 || got.Added != 2 || got.Embedded != 2 || got.Scope != "code" || got.Model != "lexical/ngrams-1" {
		t.Errorf("%+v", got)
	}
	if got := index(); got.Added+got.Moved+got.Removed+got.Embedded != 0 || got.Pieces != 2 {
		t.Errorf("nothing changed: %+v", got)
	}
	write("retry.go", "\npackage src\n\n// attempts is how often a request is retried.\nconst attempts = 4\n")
	if err := os.Remove(filepath.Join(dir, "note.txt")); err != nil {
		t.Fatal(err)
	}
	if got := index(); got.Added != 0 || got.Moved != 1 || got.Removed != 1 {
		t.Errorf("%+v", got)
	}
	found := must(s.Recall(t.Context(), api.Recall{Scope: "code", Text: "how often is it retried?"}))(t)
	if len(found.Items) != 1 || found.Items[0].Place == nil || *found.Items[0].Place != (protocol.MemoryPlace{File: "retry.go", Line: 2, End: 5}) {
		t.Errorf("%+v", found.Items)
	}
}

func reindexed(t *testing.T, s api.Service) {
	remember(t, s, "notes", api.Note{Content: "one"}, api.Note{Content: "two"})
	want := &api.Reindexed{Schema: "wf.memory_reindexed/v1", ReindexedScope: api.ReindexedScope{Scope: "notes", Model: "lexical/ngrams-1", Memories: 2, Embedded: 2}}
	for _, embedded := range []int{2, 0} {
		want.Embedded = embedded
		if d := cmp.Diff(want, must(s.Reindex(t.Context(), api.Reindex{Scope: "notes"}, nil))(t)); d != "" {
			t.Error(d)
		}
	}
}

func refused(t *testing.T, s api.Service) {
	remember(t, s, "notes", api.Note{Content: "one"})
	note := func(scope, model string, notes ...api.Note) error {
		return second(s.Remember(t.Context(), api.Remember{Scope: scope, Model: model, Notes: notes}))
	}
	for what, c := range map[string]struct{ got, want error }{
		"an empty text":             {note("notes", "", api.Note{Content: "x"}, api.Note{Content: " "}), protocol.ErrMemory},
		"a text that is too long":   {note("notes", "", api.Note{Content: strings.Repeat("x", protocol.MemoryMax+1)}), protocol.ErrMemory},
		"too long a tag":            {note("notes", "", api.Note{Content: "x", Tags: []string{strings.Repeat("x", 101)}}), protocol.ErrMemory},
		"an unknown special memory": {note("notes", "", api.Note{Content: "x", Special: "y"}), protocol.ErrUsage},
		"a model that there is not": {note("other", "nobody/x", api.Note{Content: "x"}), protocol.ErrModel},
		"a name that is none":       {second(s.Memories(t.Context(), api.MemoryQuery{Scope: "a/../b"})), protocol.ErrUsage},
		"a search for nothing":      {second(s.Recall(t.Context(), api.Recall{Scope: "notes", Text: " "})), protocol.ErrUsage},
		"a search for too many":     {second(s.Recall(t.Context(), api.Recall{Scope: "notes", Text: "x", Limit: api.MaxRecalled + 1})), protocol.ErrUsage},
		"another model than the memory has": {second(s.Recall(t.Context(), api.Recall{Scope: "notes", Text: "x", Model: "openai/nomic"})),
			protocol.ErrEmbedding},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v", what, c.got)
		}
	}
	if l := must(s.Scopes(t.Context()))(t); len(l.Items) != 1 || l.Items[0].Memories != 1 {
		t.Errorf("the memories are %+v", l.Items)
	}
}
