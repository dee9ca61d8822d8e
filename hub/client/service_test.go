package client_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"wf/api"
	"wf/hub/client"
	"wf/protocol"
)

func serviceOf(t *testing.T, h http.HandlerFunc) client.Service {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	a, err := client.New(s.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return client.Service{API: a}
}

// An archive may be longer than any other answer: it is passed on as it comes.
func TestAnArchiveIsCopiedAsItComes(t *testing.T) {
	const size = 300 << 20 // beyond what is read into memory of other answers
	s := serviceOf(t, func(w http.ResponseWriter, _ *http.Request) {
		piece := bytes.Repeat([]byte("x"), 1<<20)
		for range size / len(piece) {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	})
	var n counted
	if err := s.Export(t.Context(), "R", api.ExportOptions{}, &n); err != nil || n != size {
		t.Errorf("%d bytes, %v", n, err)
	}
}

type counted int64

func (c *counted) Write(b []byte) (int, error) { *c += counted(len(b)); return len(b), nil }

// The record of an archive names each run of a sub-workflow: it is as long as that takes.
func TestContentsOfManyRuns(t *testing.T) {
	const runs = 20_000
	cid := protocol.RawLink([]byte("head")).String()
	s := serviceOf(t, func(w http.ResponseWriter, _ *http.Request) {
		first := api.ArchiveContents{Schema: "wf.contents/v1"}
		for i := range runs {
			first.Runs = append(first.Runs, api.ArchivedRun{Run: protocol.RunID(fmt.Sprint("RUN", i)), Head: cid, Seq: 1, Files: cid})
		}
		lines := json.NewEncoder(w)
		if err := errors.Join(lines.Encode(first), lines.Encode([]string{cid})); err != nil {
			t.Error(err)
		}
	})
	named, blocks := 0, 0
	err := s.Contents(t.Context(), "R", api.ExportOptions{}, func(a protocol.Archive) error { named = len(a.Runs); return nil },
		func(some []protocol.Link) error { blocks += len(some); return nil })
	if err != nil || named != runs || blocks != 1 {
		t.Errorf("%d runs and %d blocks are named: %v", named, blocks, err)
	}
}

// What came until the connection broke off is no archive.
func TestAnArchiveThatBreaksOffIsAnError(t *testing.T) {
	s := serviceOf(t, func(w http.ResponseWriter, _ *http.Request) {
		if _, err := io.WriteString(w, "half"); err != nil {
			t.Error(err)
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler)
	})
	if err := s.Export(t.Context(), "R", api.ExportOptions{}, io.Discard); !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("%v", err)
	}
}

// The writer's error is that of the export, not one of the connection.
func TestAnArchiveThatCannotBeWrittenIsTheWritersError(t *testing.T) {
	full := errors.New("no space left")
	s := serviceOf(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "archive") })
	r, w := io.Pipe()
	r.CloseWithError(full)
	if err := s.Export(t.Context(), "R", api.ExportOptions{}, w); !errors.Is(err, full) || errors.Is(err, client.ErrUnreachable) {
		t.Errorf("%v", err)
	}
}

// A run of more steps than a server gives at once is read in pages, and is whole then.
func TestALongRunIsReadInPages(t *testing.T) {
	pages := map[string]string{
		"":          `{"id":"R","steps":[{"id":"a#3"}],"steps_total":3,"earlier":30,"roles":[{"role":"a","visits":3,"status":"ok"}]}`,
		"before=30": `{"id":"R","steps":[{"id":"a#2"}],"steps_total":3,"earlier":20}`,
		"before=20": `{"id":"R","steps":[{"id":"a#1"}],"steps_total":3}`,
	}
	s := serviceOf(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, pages[r.URL.RawQuery]) })
	v, err := s.Run(t.Context(), "R", api.Window{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, x := range v.Steps {
		ids = append(ids, x.ID)
	}
	if strings.Join(ids, " ") != "a#1 a#2 a#3" || v.Total != 0 || v.Earlier != 0 || v.Roles != nil {
		t.Errorf("%v, %d in all, earlier %d, roles %v", ids, v.Total, v.Earlier, v.Roles)
	}
}

// A list beyond what a server gives at once is read in pages, and no longer than is wanted.
func TestALongListIsReadInPages(t *testing.T) {
	asked := []string{}
	s := serviceOf(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("limit")+" "+r.URL.Query().Get("before"))
		if r.URL.Query().Get("before") == "" {
			_, _ = io.WriteString(w, `{"items":[`+strings.Repeat(`{"id":"A"},`, 499)+`{"id":"B"}],"next":"B"}`)
			return
		}
		_, _ = io.WriteString(w, `{"items":[{"id":"C"}],"next":"C"}`)
	})
	p, err := s.List(t.Context(), api.Query{Limit: 501})
	if err != nil || len(p.Items) != 501 || p.Items[500].ID != "C" || strings.Join(asked, ", ") != "500 , 1 B" {
		t.Errorf("%d runs after %q, %v", len(p.Items), asked, err)
	}
	if p.Next == nil || *p.Next != "C" {
		t.Errorf("the next page begins behind %v", p.Next)
	}
}

// What a server leaves out, or answers again and again, is an error: neither a panic nor a command without an end.
func TestAnAnswerThatWfWouldNotGiveIsAnError(t *testing.T) {
	for _, body := range []string{
		`{}`, `null`, `{"items":[null],"steps":[null],"step":null,"compactions":1,"next":"A"}`, `{"items":[{"id":"A"}],"next":"A","steps":[{"id":"a#1"}],"earlier":5,"compactions":1}`,
		`{"id":"OTHER","run":"OTHER","items":[],"next":"A","steps":[]}`, `{"id":"a#1","run":"OTHER","items":[],"total":{}}`,
	} {
		s := serviceOf(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
		errs := map[string]error{}
		_, errs["cost"] = s.Cost(t.Context(), "R", "role")
		if !strings.Contains(body, "next") { // it is a list, a run and a cache without anything in them
			_, errs["step"] = s.Step(t.Context(), "R", "a#1")
		} else {
			_, errs["list"] = s.List(t.Context(), api.Query{})
			_, errs["run"] = s.Run(t.Context(), "R", api.Window{})
			_, errs["cache"] = s.Cache(t.Context(), "R")
		}
		for what, err := range errs {
			if protocol.CodeOf(err) != "bad_answer" {
				t.Errorf("%s of %s: %v", what, body, err)
			}
		}
	}
}
