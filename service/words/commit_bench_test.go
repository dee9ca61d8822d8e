package words

import (
	"fmt"
	"strings"
	"testing"

	"wf/api"
	"wf/protocol"
	"wf/service/query"
)

// filled puts units into the folder of an index, some in each segment.
func (p *place) filled(units, each int) {
	p.Helper()
	if err := p.x.take(p.Context()); err != nil {
		p.Fatal(err)
	}
	defer p.x.give()
	unlock, err := p.x.shelf.lock(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	defer unlock()
	var names []string
	for b, i := (&builder{}), 0; i < units; i++ {
		b.begin(unit{id: fmt.Sprintf("RUN%07d", i), head: strings.Repeat("h", 36), seq: 9, facts: query.Facts{Status: protocol.Done, Workflow: "talk", Title: fmt.Sprint("Talk ", i), Tags: []string{"t"}}})
		for seq := range protocol.Seq(9) {
			b.text(seq+1, ofAnswer, fmt.Sprintf("%x %x of the store and its runs", i, int(seq)*i))
		}
		if i%each == each-1 || i == units-1 {
			name, err := p.x.shelf.put(p.Context(), b.encode(key()))
			if err != nil {
				p.Fatal(err)
			}
			names, b = append(names, name), &builder{}
		}
	}
	if _, err := p.x.shelf.count(p.Context(), "", names); err != nil {
		p.Fatal(err)
	}
}

// BenchmarkCommit is what it costs to index an event of one run, by how many runs are indexed, and the first search behind it. What the
// commit costs must not grow with them.
func BenchmarkCommit(b *testing.B) {
	for _, units := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(units), func(b *testing.B) {
			p := newPlace(b, b.TempDir())
			run := p.begin(talk, "rails")
			p.filled(units, 5000)
			p.catchUpOf(run)
			seq := p.x.at.at(string(run))
			one := func(search bool) {
				next := &builder{}
				u := unit{id: string(run), from: seq, seq: seq + 1, head: "h"}
				next.begin(u)
				next.text(u.seq, ofAnswer, fmt.Sprintf("what was said %x", seq))
				seq++
				if err := p.x.take(b.Context()); err != nil {
					b.Fatal(err)
				}
				if err := p.x.commit(b.Context(), b.Context(), next, nil); err != nil {
					b.Fatal(err)
				}
				p.x.give()
				if search {
					if _, err := p.x.Find(b.Context(), []api.Wanted{{Word: "what"}}, ""); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.Run("commit", func(b *testing.B) {
				for b.Loop() {
					one(false)
				}
			})
			b.Run("commit and search", func(b *testing.B) {
				for b.Loop() {
					one(true)
				}
			})
			b.Run("search", func(b *testing.B) {
				for b.Loop() {
					if _, err := p.x.Find(b.Context(), []api.Wanted{{Word: "what"}}, ""); err != nil {
						b.Fatal(err)
					}
				}
			})
			if n := p.x.at.at(string(run)); n != seq {
				b.Errorf("event %d is indexed, want %d", n, seq)
			}
		})
	}
}

// catchUpOf indexes a run, and leaves the others as they are.
func (p *place) catchUpOf(run protocol.RunID) {
	p.Helper()
	c := &catching{x: p.x, ctx: p.Context(), wait: p.Context()}
	h, err := p.s.Head(p.Context(), protocol.RunHead(run))
	if err == nil {
		err = c.look()
	}
	if err == nil {
		err = c.run(run, h)
	}
	if err == nil {
		err = c.commit()
	}
	if err != nil {
		p.Fatal(err)
	}
}
