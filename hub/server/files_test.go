package server

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"wf/api"
	"wf/hub/guard"
	"wf/protocol"
	"wf/protocol/tree"
)

// recorded is a shop whose run has looked at two trees; build#1 found the first and left the second.
func recorded(t *testing.T, before, after []tree.Entry) *shop {
	s := empty()
	for i, entries := range [][]tree.Entry{before, before, after} {
		l := api.Look{Seq: protocol.Seq(i + 1), Step: "build#1", Attempt: 1, Phase: []string{api.LookStart, protocol.FilesBefore, protocol.FilesAfter}[i], By: []string{"build#1"}, Tree: s.dir(t, entries...).String()}
		if i == 0 {
			l.Step, l.By = "", []string{}
		}
		s.looks = append(s.looks, l)
	}
	return s
}

const filesAt = "/v1/runs/R/steps/build%231/file"

func TestFilesOfStepsAreListedInParts(t *testing.T) {
	maker := empty()
	var before, after []tree.Entry
	for i := range 7 {
		e := maker.file(t, fmt.Sprint(i), fmt.Sprint("was ", i))
		before = append(before, e)
		if i != 3 {
			after = append(after, e)
		}
	}
	after[0] = maker.file(t, "0", "is")
	after = append(after, tree.Entry{Name: "key", Mode: tree.Omitted, Size: 9, Why: tree.WhySecret})
	s := recorded(t, before, after)
	for l, b := range maker.blocks {
		s.blocks[l] = b
	}
	for _, limit := range []string{"", "1", "3", "7", "8", "9"} {
		var got []string
		for next, n := "", 0; n < 20; n++ {
			var list api.StepFiles
			w := ask(s, guard.AllScopes, "GET", filesAt+"s?limit="+limit+"&after="+url.QueryEscape(next), "")
			if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != 200 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			for _, f := range list.Files {
				got = append(got, strings.TrimSpace(f.Path+" "+f.Change+" "+f.Why))
			}
			if next = list.Next; next == "" {
				break
			}
		}
		if want := "0 changed,1,2,3 removed,4,5,6,key added secret"; strings.Join(got, ",") != want {
			t.Errorf("in parts of %q: %v, want %s", limit, got, want)
		}
	}
	for query, want := range map[string]string{"?path=0": "is", "?path=0&before=true": "was 0", "?path=3&before=true": "was 3"} {
		if w := ask(s, guard.AllScopes, "GET", filesAt+query, ""); w.Code != 200 || w.Body.String() != want || w.Header().Get("Content-Type") != MediaFile {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	for query, want := range map[string]string{"?path=3": "404 unknown_artifact", "?path=key": "404 unknown_artifact", "": "400 bad_request", "?path=0&before=x": "400 bad_request", "s?after=none": "400 bad_request"} {
		if got := code(t, ask(s, guard.AllScopes, "GET", filesAt+query, "")); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	clear(s.blocks) // they were dropped
	for _, query := range []string{"?path=0", "s"} {
		if got := code(t, ask(s, guard.AllScopes, "GET", filesAt+query, "")); got != "404 not_found" {
			t.Errorf("%s: %s", query, got)
		}
	}
}

func TestLooksAreListedInParts(t *testing.T) {
	s := recorded(t, nil, nil)
	var got []string
	for next, n := "", 0; n < 5; n++ {
		var list api.Looks
		w := ask(s, guard.AllScopes, "GET", "/v1/runs/R/looks?limit=2&after="+next, "")
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		for _, l := range list.Looks {
			got = append(got, l.Phase)
		}
		if next = list.Next; next == "" {
			break
		}
	}
	if strings.Join(got, " ") != "start before after" {
		t.Error(got)
	}
	for _, after := range []string{"9", "own-0", "own-1", "own-x", "own--1"} {
		if got := code(t, ask(s, guard.AllScopes, "GET", "/v1/runs/R/looks?after="+after, "")); got != "400 bad_request" {
			t.Errorf("%s: %s", after, got)
		}
	}
}

// C-4: behind the looks follow the visits with own copies.
func TestC04VisitsWithOwnCopiesAreListedInParts(t *testing.T) {
	for visits := range 5 {
		s := recorded(t, nil, nil)
		want := "start before after"
		for i := range visits {
			s.own = append(s.own, api.OwnVisit{Step: fmt.Sprintf("coder#1[%d]", i), Merged: []string{"a"}})
			want += " " + s.own[i].Step
		}
		for _, limit := range []string{"1", "2", "3", "4", "99", ""} {
			var got []string
			for next, n := "", 0; n < 10; n++ {
				var list api.Looks
				w := ask(s, guard.AllScopes, "GET", "/v1/runs/R/looks?limit="+limit+"&after="+next, "")
				if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != 200 || list.Looks == nil {
					t.Fatalf("%d %s", w.Code, w.Body)
				}
				for _, l := range list.Looks {
					got = append(got, l.Phase)
				}
				for _, v := range list.Own {
					got = append(got, v.Step)
				}
				if next = list.Next; next == "" {
					break
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%d visits in parts of %q: %s", visits, limit, got)
			}
		}
	}
}
