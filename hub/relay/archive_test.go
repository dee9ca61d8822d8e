package relay_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"wf/api"
	"wf/cas"
	"wf/hub/client"
	"wf/hub/guard"
	"wf/hub/reply"
	"wf/hub/server"
	"wf/protocol"
)

// takes has a desk import what is sent to it, as the server of a store does.
func (d *desk) takes() *desk {
	d.worker.Scopes = append([]guard.Scope{guard.Admin}, guard.Read, guard.Run, guard.Answer)
	inner := d.worker.Handler
	d.worker.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !server.Upload(r) {
			inner.ServeHTTP(w, r)
			return
		}
		if err := guard.Need(r.Context(), guard.Admin); err != nil {
			reply.Error(w, err)
			return
		}
		got, err := cas.Import(r.Context(), r.Body, d.store, cas.ImportOptions{Run: protocol.RunID(r.URL.Query().Get("run"))})
		if err != nil {
			reply.Error(w, err)
			return
		}
		reply.JSON(w, 200, api.Imported{Schema: "wf.import/v1", Runs: got.Runs, Roots: []string{got.Roots[0].String()}, Blocks: got.Blocks, Bytes: got.Bytes})
	})
	return d
}

// heavy puts a run with blocks of so many bytes into a store, and returns its archive.
func heavy(t testing.TB, run protocol.RunID, sizes ...int) []byte {
	t.Helper()
	s := must(cas.Open(t.Context(), t.TempDir(), cas.Options{}))(t)
	defer s.Close()
	j := must(s.Journal(t.Context(), run))(t)
	for i, size := range sizes {
		big := cas.Raw(bytes.Repeat(fmt.Append(nil, i, " "), size/2+1)[:size])
		var data protocol.Data = protocol.RunStarted{Start: big.Link, Source: big.Link}
		if i > 0 {
			data = protocol.Forked{Start: big.Link, Source: big.Link}
		}
		must(j.Append(t.Context(), int64(i+1), []cas.Draft{{Data: data}}, []cas.Block{big}))(t)
	}
	var out bytes.Buffer
	must(cas.Export(t.Context(), &out, s, cas.ExportOptions{}, run))(t)
	return out.Bytes()
}

// An archive is longer than any frame of the link, and its longest block fills a section of 32 MiB.
func TestAnArchiveOfAnyLengthReachesAWorker(t *testing.T) {
	h := newHouse(t)
	d := newDesk(h, "a").takes().arrive()
	h.await(1)
	s := client.Service{API: h.api}
	for run, archive := range map[protocol.RunID][]byte{
		"block": heavy(t, "block", cas.BlockMax),
		"long":  heavy(t, "long", 30<<20, 30<<20, 30<<20, 30<<20),
	} {
		got, err := s.Import(t.Context(), bytes.NewReader(archive), api.ImportOptions{})
		if err != nil || len(got.Runs) != 1 || got.Runs[0] != run {
			t.Fatalf("%s, %d bytes: %+v, %v", run, len(archive), got, err)
		}
		var back bytes.Buffer
		if _, err := cas.Export(t.Context(), &back, d.store, cas.ExportOptions{}, run); err != nil || !bytes.Equal(back.Bytes(), archive) {
			t.Errorf("%s: %d of %d bytes, %v", run, back.Len(), len(archive), err)
		}
	}
}

// What breaks off on the way, or is damaged, leaves nothing at the worker, and the next one comes through.
func TestAnArchiveThatBreaksOffLeavesNothingAtTheWorker(t *testing.T) {
	h := newHouse(t)
	d := newDesk(h, "a").takes().arrive()
	h.await(1)
	s := client.Service{API: h.api}
	archive := heavy(t, "one", 20<<20, 20<<20)
	gone := errors.New("the file cannot be read")
	if _, err := s.Import(t.Context(), io.MultiReader(bytes.NewReader(archive[:30<<20]), failing{gone}), api.ImportOptions{}); !errors.Is(err, gone) {
		t.Errorf("broken off: %v", err)
	}
	damaged := bytes.Clone(archive)
	damaged[1<<20] ^= 1
	if _, err := s.Import(t.Context(), bytes.NewReader(damaged), api.ImportOptions{}); protocol.CodeOf(err) != protocol.ErrCorrupt.Code {
		t.Errorf("damaged: %v", err)
	}
	r := must(cas.Verify(t.Context(), d.store, cas.VerifyOptions{All: true}))(t)
	if r.Checked.Blocks != 0 || len(r.Heads) != 0 {
		t.Errorf("%d blocks and %d heads are left", r.Checked.Blocks, len(r.Heads))
	}
	if _, err := s.Import(t.Context(), bytes.NewReader(archive), api.ImportOptions{}); err != nil {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// The client names the worker that takes it, unless there is one alone; a worker that does not let the hub's owners in
// takes none.
func TestAnArchiveGoesToTheWorkerThatIsNamed(t *testing.T) {
	h := newHouse(t)
	h.awaitGrace()
	archive := heavy(t, "one", 1000)
	s := client.Service{API: h.api}
	if _, err := s.Import(t.Context(), bytes.NewReader(archive), api.ImportOptions{}); protocol.CodeOf(err) != protocol.ErrWorkerAway.Code {
		t.Errorf("without workers: %v", err)
	}
	newDesk(h, "a").takes().arrive()
	b := newDesk(h, "b").takes().arrive()
	closed := newDesk(h, "c").takes()
	closed.worker.Scopes = nil // what the hub may do by default
	closed.arrive()
	h.await(3)
	if _, err := s.Import(t.Context(), bytes.NewReader(archive), api.ImportOptions{}); protocol.CodeOf(err) != protocol.ErrAmbiguous.Code {
		t.Errorf("among three: %v", err)
	}
	if _, err := s.Import(t.Context(), bytes.NewReader(archive), api.ImportOptions{Worker: "x"}); protocol.CodeOf(err) != protocol.ErrNotFound.Code {
		t.Errorf("one that is not there: %v", err)
	}
	got, err := s.Import(t.Context(), bytes.NewReader(archive), api.ImportOptions{Worker: "b", Run: "copy"})
	if err != nil || got.Runs[0] != "copy" {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, _, err := b.store.Tip(t.Context(), "copy"); err != nil {
		t.Error(err)
	}
	if _, err := s.Import(t.Context(), bytes.NewReader(archive), api.ImportOptions{Worker: "c"}); !errors.Is(err, protocol.ErrForbidden) {
		t.Errorf("a worker that takes none: %v", err)
	}
}
