package cas

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wf/protocol"
)

// lies reports whether a text is in a file of a store: as it is, or in a segment of a pack that begins at any of its bytes.
func lies(t *testing.T, path, text string) bool {
	t.Helper()
	b := must(os.ReadFile(path))
	if strings.Contains(string(b), text) {
		return true
	}
	for i := range b {
		size, n := binary.Uvarint(b[i:])
		at := i + n
		if n <= 0 || n > 3 || size < 3 || size > uint64(len(b)-at) || b[at+1] != packZstd1 {
			continue
		}
		body, _ := segment{0, int(b[at]), packZstd1, b[at+2 : at+int(size)]}.plain(nil)
		if strings.Contains(string(body), text) {
			return true
		}
	}
	return false
}

// What a run that was deleted said is in no byte of store.db behind a collection, whether that writes the file anew or removes a few packs
// from it, also where an earlier one noted the pack in which it lies. Nor is a state of the run, which is derived.
func TestWhatIsDeletedIsInNoByteOfTheStore(t *testing.T) {
	const said, state = "the account is 4711", "a state with 4711"
	for name, anew := range map[string]bool{"removed": false, "written anew": true} {
		for _, noted := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", noted ", noted), func(t *testing.T) {
				s := openSample(t)
				sampleRun(t, s, "keep", 4)
				for i := range 20 {
					sampleRunOf(t, s, protocol.RunID(fmt.Sprint("more", i)), 2, func(v int) string { return fmt.Sprint(i, v, randomText(9000)) })
				}
				commitBlocks(t, s, Raw([]byte("short")))
				if noted {
					collect(t, s, GCOptions{Grace: time.Hour})
				}
				sampleRunOf(t, s, "gone", 3, func(v int) string { return fmt.Sprint(v, said) })
				if err := s.Commit(t.Context(), Batch{Derived: []Derived{{Key: StateKey("gone"), Head: must(s.Head(t.Context(), "run/gone")).Link, Data: []byte(state)}}}); err != nil {
					t.Fatal(err)
				}
				db := filepath.Join(s.Dir(), fileDB)
				if !lies(t, db, said) || !lies(t, db, state) {
					t.Fatal("what is looked for is not found while it is there")
				}
				bury(t, s, "gone")
				for i := range 20 {
					if anew {
						bury(t, s, protocol.RunID(fmt.Sprint("more", i)))
					}
				}
				if r := collect(t, s, GCOptions{Grace: time.Hour}); r.Compacted != anew {
					t.Fatalf("%+v", r)
				}
				for _, text := range []string{said, state} {
					if lies(t, db, text) {
						t.Errorf("%q is in store.db", text)
					}
				}
			})
		}
	}
}
