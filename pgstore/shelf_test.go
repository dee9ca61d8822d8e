package pgstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync"
	"testing"

	"wf/pgstore"
)

// shelfPages is how many pages of files a database holds.
const shelfPages = "select count(*) from wf.notes where name like 'words/%'"

func TestAShelfHasPartsOfFiles(t *testing.T) {
	dsn := fresh(t, running(t))
	s := open(t, dsn)
	h := s.Shelf("words")
	if list, n, err := h.List(t.Context()); list != nil || n != 0 || err != nil {
		t.Fatalf("an empty shelf has the list %q, replaced %d times, %v", list, n, err)
	}
	const page = 32 << 10
	r := rand.New(rand.NewPCG(1, 2))
	files := map[string][]byte{}
	var names []string
	for _, size := range []int{1, page - 1, page, page + 1, 128*page - 1, 128 * page, 128*page + 1, 300*page + 7} { // 128 pages are sent at once
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		name := fmt.Sprint("of", size)
		files[name], names = b, append(names, name)
		for range 2 { // it may be sent again
			if err := h.Put(t.Context(), name, b); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n, ok, err := h.Replace(t.Context(), 0, []byte("one"), names); n != 1 || !ok || err != nil {
		t.Fatalf("the first list: %d, %t, %v", n, ok, err)
	}
	var parts []pgstore.Part
	var want [][]byte
	for name, b := range files {
		for _, at := range []int{0, len(b) / 2, len(b) - 1, page - 1, page, page + 1} {
			for _, size := range []int{0, 1, page, page + 1, 3 * page, len(b) - at} {
				if at >= 0 && size >= 0 && at+size <= len(b) {
					parts, want = append(parts, pgstore.Part{File: name, At: at, Size: size}), append(want, b[at:at+size])
				}
			}
		}
	}
	have, err := h.Read(t.Context(), parts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if !bytes.Equal(have[i], want[i]) {
			t.Errorf("%+v is not what was put", parts[i])
		}
	}
	for _, p := range []pgstore.Part{{File: "none", Size: 1}, {File: "of1", At: page, Size: 1}, {File: names[2], At: page, Size: 2}} {
		if _, err := h.Read(t.Context(), []pgstore.Part{p}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	short, err := h.Read(t.Context(), []pgstore.Part{{File: names[0], Size: page}, {File: names[3], At: 1, Size: 3 * page}, {File: names[2], At: page - 1, Size: 2}})
	if err != nil || len(short[0]) != 1 || len(short[1]) != page || len(short[2]) != 1 {
		t.Errorf("parts that go beyond the end have %d parts, %v", len(short), err)
	}
	if _, ok, err := h.Replace(t.Context(), 0, []byte("late"), nil); ok || err != nil {
		t.Errorf("a list in the place of one that is gone: %t, %v", ok, err)
	}
	if n, err := h.Number(t.Context()); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n := ask(t, dsn, shelfPages); n < 300+3*128 {
		t.Errorf("%d pages are there", n)
	}
	if n, ok, err := h.Replace(t.Context(), 1, []byte("two"), names[1:2]); n != 2 || !ok || err != nil {
		t.Errorf("the second list: %d, %t, %v", n, ok, err)
	}
	if list, n, err := h.List(t.Context()); string(list) != "two" || n != 2 || err != nil {
		t.Errorf("%q, %d, %v", list, n, err)
	}
	if n := ask(t, dsn, shelfPages); n != 1 {
		t.Errorf("%d pages are left", n)
	}
	for _, name := range []string{names[1] + "x", names[2]} { // of which one begins like a file that stays, and one is gone
		if err := h.Put(t.Context(), name, files[names[7]]); err != nil {
			t.Fatal(err)
		}
		if err := h.Remove(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if n := ask(t, dsn, "select count(*) from wf.notes"); n != 2 {
		t.Errorf("%d rows are left", n)
	}
}

// Of many processes that replace one list each does so in turn, and what a list names is there.
func TestAShelfIsReplacedInTurn(t *testing.T) {
	dsn := fresh(t, running(t))
	const processes, each = 4, 15
	var work sync.WaitGroup
	for p := range processes {
		s := open(t, dsn)
		work.Go(func() {
			h := s.Shelf("words")
			for i := 0; i < each; {
				_, n, err := h.List(t.Context())
				name := fmt.Sprintf("%d-%d-%d", p, i, n)
				if err == nil {
					err = h.Put(t.Context(), name, []byte(name))
				}
				if err != nil {
					t.Error(err)
					return
				}
				_, ok, err := h.Replace(t.Context(), n, []byte(name), []string{name})
				if err != nil {
					t.Error(err)
					return
				}
				if ok {
					i++
				}
			}
		})
	}
	work.Wait()
	h := open(t, dsn).Shelf("words")
	list, n, err := h.List(t.Context())
	if err != nil || n != processes*each {
		t.Fatalf("replaced %d times, %v", n, err)
	}
	if got, err := h.Read(t.Context(), []pgstore.Part{{File: string(list), Size: len(list)}}); err != nil || string(got[0]) != string(list) {
		t.Errorf("the file that is listed: %q, %v", got, err)
	}
}
