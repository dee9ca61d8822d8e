package query

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// Pages of a list go on behind the place where the one before ended, whatever the size of a page, also where the run there was deleted or moved,
// and where runs moved at the same microsecond: no run that stayed where it was is missed, or listed twice.
func TestPagesGoOnBehindTheirPlace(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	const runs = 60
	for limit := 1; limit <= runs+1; limit++ {
		var heads []cas.Head
		for i := range runs {
			heads = append(heads, cas.Head{Name: protocol.RunHead(protocol.RunID(fmt.Sprint("R", i))), TS: 1_700_000_000_000_000 + int64(dice.IntN(20))})
		}
		slices.SortFunc(heads, cas.NewerFirst)
		stays, listed := slices.Clone(heads), map[string]int{}
		for place := ""; ; {
			rest := heads
			if place != "" {
				var err error
				if rest, err = behind(heads, place); err != nil {
					t.Fatal(err)
				}
			}
			if len(rest) == 0 {
				break
			}
			rest = rest[:min(limit, len(rest))]
			for _, h := range rest {
				listed[h.Name]++
			}
			last := rest[len(rest)-1]
			place = api.RowPlace(Stamp(last.TS), protocol.RunOf(last.Name))
			gone := last // the run of the place itself, or another one
			if dice.IntN(2) == 0 {
				gone = heads[dice.IntN(len(heads))]
			}
			stays = slices.DeleteFunc(stays, func(h cas.Head) bool { return h.Name == gone.Name })
			heads = slices.DeleteFunc(slices.Clone(heads), func(h cas.Head) bool { return h.Name == gone.Name })
			if dice.IntN(2) == 0 { // it moved, and is the newest one
				gone.TS = time.Now().UnixMicro()
				heads = append(heads, gone)
				slices.SortFunc(heads, cas.NewerFirst)
			}
		}
		for _, h := range stays {
			if listed[h.Name] != 1 {
				t.Errorf("pages of %d: %s is listed %d times", limit, h.Name, listed[h.Name])
			}
		}
	}
	if _, err := behind(nil, "R1"); protocol.HintOf(err) == "" {
		t.Errorf("behind a run that is not there: %v", err)
	}
}
