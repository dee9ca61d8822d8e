package protocol_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/ipfs/go-cid"
	"github.com/multiformats/go-multihash"
	"pgregory.net/rapid"

	"wf/protocol"
)

func TestLayersAreAMapThatNeverChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type version struct {
			layers *protocol.Layers[int, int]
			want   map[int]int
		}
		versions := []version{{nil, map[int]int{}}}
		for i := range rapid.IntRange(1, 30).Draw(t, "changes") {
			on := rapid.SampledFrom(versions).Draw(t, "version")
			more := rapid.MapOfN(rapid.IntRange(0, 20), rapid.Just(i), 0, 4).Draw(t, "more")
			want := maps.Clone(on.want)
			maps.Copy(want, more)
			versions = append(versions, version{on.layers.With(more), want})
		}
		for _, v := range versions {
			if got := v.layers.All(); !maps.Equal(got, v.want) {
				t.Fatalf("it holds %v, want %v", got, v.want)
			}
			for key := range 21 {
				got, there := v.layers.Get(key)
				if want, known := v.want[key]; got != want || there != known {
					t.Fatalf("key %d is %d, %v, want %d, %v", key, got, there, want, known)
				}
			}
		}
	})
}

func TestARecordRanksAboveAllThatItGoesOnFrom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []protocol.Past
		for i := range rapid.IntRange(1, 20).Draw(t, "records") {
			p := protocol.Past{CID: cidOf(t, fmt.Sprint(i))}
			for range rapid.IntRange(0, min(i, 3)).Draw(t, "parents") {
				p.Parents = append(p.Parents, list[rapid.IntRange(0, i-1).Draw(t, "parent")].CID)
			}
			if i > 0 && rapid.Bool().Draw(t, "resumes") {
				p.Resumes = list[rapid.IntRange(0, i-1).Draw(t, "resumed")].CID
			}
			list = append(list, p)
		}
		n := rapid.IntRange(0, len(list)).Draw(t, "first")
		records := (*protocol.Records)(nil).With(rapid.Permutation(list[:n]).Draw(t, "order")...).With(rapid.Permutation(list[n:]).Draw(t, "then")...)
		if records.Len() != len(list) {
			t.Fatalf("%d records of %d", records.Len(), len(list))
		}
		for _, p := range list {
			_, rank, there := records.Get(p.CID)
			for _, l := range append(p.Parents, p.Resumes) {
				if _, above, known := records.Get(l); !there || known && above >= rank {
					t.Fatalf("%s has rank %d, and goes on from %s of rank %d", p.CID.Short(), rank, l.Short(), above)
				}
			}
		}
	})
}

func TestWhatFollowsFromARecordThatIsReplacedIsForgotten(t *testing.T) {
	p := protocol.Past{CID: cidOf(t, "p"), Text: "old"}
	records := (*protocol.Records)(nil).With(p)
	records.Keep("p", "old")
	if more := records.With(protocol.Past{CID: cidOf(t, "q")}); more.Len() != 2 {
		t.Errorf("%d records", more.Len())
	} else if kept, ok := more.Kept("p"); !ok || kept != "old" {
		t.Errorf("a larger set keeps %v, %v", kept, ok)
	}
	p.Text = "new"
	replaced := records.With(p)
	if kept, ok := replaced.Kept("p"); ok || replaced.Len() != 1 {
		t.Errorf("it keeps %v of %d records", kept, replaced.Len())
	}
}

// cidOf is the CID of a text.
func cidOf(t interface{ Fatal(...any) }, text string) protocol.Link {
	sum, err := multihash.Sum([]byte(text), multihash.SHA2_256, -1)
	if err != nil {
		t.Fatal(err)
	}
	return protocol.NewLink(cid.NewCidV1(cid.Raw, sum))
}
