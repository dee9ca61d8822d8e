package words

import (
	"io"
	"maps"
	"slices"

	"wf/api"
	"wf/protocol"
)

// A builder makes a segment. Its zero value is ready.
type builder struct {
	units []unit
	ends  []uint32
	docs  []doc
	words map[string]*[]uint32 // the documents that have each, in order
	last  map[string]int       // the newest part of each unit
	texts int                  // bytes of the texts that were added
	heads int                  // bytes of the units that were begun
}

// text adds what an event of the last unit says under a kind. Texts of one event and kind are one document.
func (b *builder) text(seq protocol.Seq, k kind, text string) {
	if k == ofPerson {
		b.add(person(text).Word, b.doc(doc{seq, k}))
		return
	}
	text = cut(text, textMax)
	d := uint32(0)
	begun := false
	for w := range api.Words(text) {
		if !begun {
			begun = true
			d = b.doc(doc{seq, k})
		}
		b.add(w.Text, d)
	}
	b.texts += len(text)
}

// person is the word by which a person is found. No text has it.
func person(name string) api.Wanted {
	return api.Wanted{Word: "\x00" + cut(api.Folded(name), personMax)}
}

// personMax are the bytes of a name that count.
const personMax = 200

// doc is the number of a document of the last unit, which is the newest one or a new one.
func (b *builder) doc(x doc) uint32 {
	last := len(b.units) - 1
	from := uint32(0)
	if last > 0 {
		from = b.ends[last-1]
	}
	for d := b.ends[last]; d > from && b.docs[d-1].seq == x.seq; d-- {
		if b.docs[d-1] == x {
			return d - 1
		}
	}
	b.docs = append(b.docs, x)
	b.ends[last] = uint32(len(b.docs))
	return uint32(len(b.docs)) - 1
}

// add notes that a document has a word.
func (b *builder) add(w string, d uint32) {
	if b.words == nil {
		b.words = map[string]*[]uint32{}
	}
	list := b.words[w]
	if list == nil {
		list = new([]uint32)
		b.words[w] = list
	}
	if i, found := slices.BinarySearch(*list, d); !found {
		*list = slices.Insert(*list, i, d)
	}
}

// full reports whether what there is is to be committed. Of many small runs the units take more than the texts.
func (b *builder) full() bool { return b.texts+b.heads >= commitBytes }

// begin begins a unit, or goes on with it where it is the last.
func (b *builder) begin(u unit) {
	b.heads += len(u.append(nil))
	if n := len(b.units) - 1; n >= 0 && b.units[n].id == u.id && b.units[n].seq == u.from {
		u.from = b.units[n].from
		b.units[n] = u
		return
	}
	if b.last == nil {
		b.last = map[string]int{}
	}
	b.last[u.id] = len(b.units)
	b.units = append(b.units, u)
	b.ends = append(b.ends, uint32(len(b.docs)))
}

// unit is the newest part of a unit; nil for one that is not there.
func (b *builder) unit(id string) *unit {
	if i, ok := b.last[id]; ok {
		return &b.units[i]
	}
	return nil
}

// sorted are the words in order.
func (b *builder) sorted() []string { return slices.Sorted(maps.Keys(b.words)) }

// merge adds segments, which read has a function read, without the units that drop names. Parts of a unit become one where no other segment
// has what is between them.
func (b *builder) merge(all []*segment, drop map[string]bool, read func(func(i int, r io.ReaderAt) error) error) error {
	type place struct{ seg, unit int }
	parts := map[string][]place{}
	var order []string
	moved := make([][]uint32, len(all)) // by segment and document: 1 + the new number, 0 for one that is dropped
	for i, s := range all {
		moved[i] = make([]uint32, len(s.docs))
		for j := range s.units {
			id := s.units[j].id
			if drop[id] {
				continue
			}
			if parts[id] == nil {
				order = append(order, id)
			}
			parts[id] = append(parts[id], place{i, j})
		}
	}
	for _, id := range order {
		list := parts[id]
		slices.SortFunc(list, func(x, y place) int { return int(all[x.seg].units[x.unit].from - all[y.seg].units[y.unit].from) })
		for _, p := range list {
			b.begin(all[p.seg].units[p.unit])
			for d, end := all[p.seg].docsOf(p.unit); d < end; d++ {
				b.docs = append(b.docs, all[p.seg].docs[d])
				moved[p.seg][d] = uint32(len(b.docs))
			}
			b.ends[len(b.ends)-1] = uint32(len(b.docs))
		}
	}
	return read(func(i int, r io.ReaderAt) error {
		return all[i].words(r, "", func(w string, docs func(func(uint32))) bool {
			docs(func(d uint32) {
				if to := moved[i][d]; to > 0 {
					b.add(w, to-1)
				}
			})
			return true
		})
	})
}
