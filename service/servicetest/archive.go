package servicetest

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"wf/api"
	"wf/protocol"
)

// archives takes a run from one store to another, once more, further, and beside itself.
func archives(t *testing.T, suite Suite) {
	from, to := suite.open(t), suite.open(t)
	run := begin(t, from, strings.Repeat("roads ", 150_000)) // 900 kB
	early := exported(t, from, run)
	got := must(imported(t.Context(), to, early, api.ImportOptions{}))(t)
	if d := cmp.Diff([]protocol.RunID{run}, got.Runs); d != "" || got.Schema != "wf.import/v1" || len(got.Roots) != 2 || got.Blocks == 0 || got.Bytes < 1_800_000 || got.Held != nil || got.Forwarded != nil {
		t.Errorf("imported %+v", got)
	}
	if v := shown(t, to, run); !v.Foreign || v.Status != protocol.Waiting || v.Head != shown(t, from, run).Head {
		t.Errorf("the imported run is %s, foreign is %v", v.Status, v.Foreign)
	}
	if !bytes.Equal(exported(t, to, run), early) {
		t.Error("exported from where it was imported, the archive differs")
	}
	must(from.Answer(t.Context(), run, api.Answer{Text: "yes"}))(t)
	if v := park(t, from, run); v.Status != protocol.Done {
		t.Fatalf("it ended as %s", v.Status)
	}
	late := exported(t, from, run)
	for _, step := range []struct {
		what            string
		archive         []byte
		o               api.ImportOptions
		runs            protocol.RunID
		held, forwarded bool
	}{
		{"the same again", early, api.ImportOptions{}, run, true, false},
		{"a further one", late, api.ImportOptions{}, run, false, true},
		{"an older one", early, api.ImportOptions{}, run, true, false},
		{"under another id", early, api.ImportOptions{Run: "copy"}, "copy", false, false},
		{"under that id again", early, api.ImportOptions{Run: "copy"}, "copy", true, false},
	} {
		got, err := imported(t.Context(), to, step.archive, step.o)
		if err != nil || len(got.Runs) != 1 || got.Runs[0] != step.runs || (len(got.Held) > 0) != step.held || (len(got.Forwarded) > 0) != step.forwarded {
			t.Errorf("%s: %+v, %v", step.what, got, err)
		}
	}
	if v := shown(t, to, run); v.Status != protocol.Done || !v.Foreign {
		t.Errorf("in the end it is %s, foreign is %v", v.Status, v.Foreign)
	}
	other := begin(t, to, "rails")
	fails(t, "under the id of another run", second(imported(t.Context(), to, early, api.ImportOptions{Run: other})), protocol.ErrHeadMoved)
	_, err := imported(t.Context(), to, early, api.ImportOptions{Worker: "nobody"})
	if c := protocol.CodeOf(err); c != protocol.ErrUsage.Code && c != protocol.ErrNotFound.Code { // the latter at a hub
		t.Errorf("at a worker that is not there: %v", err)
	}
	fails(t, "under an id that is none", second(imported(t.Context(), to, early, api.ImportOptions{Run: "../run"})), protocol.ErrUnknownRun)
}

// damaged brings archives that are none: nothing of them is there afterwards, and the error says that it is the archive.
func damaged(t *testing.T, suite Suite) {
	from, to := suite.open(t), suite.open(t)
	run := begin(t, from, strings.Repeat("roads ", 150_000))
	whole := exported(t, from, run)
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for what, archive := range map[string][]byte{"cut off": whole[:len(whole)-50], "flipped": flipped, "no archive": []byte("# A note\n"), "empty": nil} {
		_, err := imported(t.Context(), to, archive, api.ImportOptions{})
		fails(t, what, err, protocol.ErrCorrupt)
		if !api.IsArchiveFault(err) || !strings.HasPrefix(err.Error(), "import: ") {
			t.Errorf("%s is not said to be a fault of the archive: %v", what, err)
		}
	}
	broken := errors.New("the file cannot be read")
	if _, err := to.Import(t.Context(), io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), iotest.ErrReader(broken)), api.ImportOptions{}); !errors.Is(err, broken) {
		t.Errorf("a file that cannot be read: %v", err)
	}
	if p, err := to.List(t.Context(), api.Query{All: true}); err != nil || len(p.Items) != 0 {
		t.Errorf("%d runs came of what is no archive, %v", len(p.Items), err)
	}
	if got, err := imported(t.Context(), to, whole, api.ImportOptions{}); err != nil || got.Held != nil {
		t.Errorf("the whole archive afterwards: %+v, %v", got, err)
	}
}
