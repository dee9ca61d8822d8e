package engine

import (
	"wf/api"
	"wf/protocol"
)

// What one answer shows of a run has a bound too: a thousand records can name one text of 64 MiB. viewMax is how many bytes the
// texts of an answer have at most, as many as a client of a server takes; up to viewFree nothing is counted before it is read.
const (
	viewMax  = api.MaxAnswer
	viewFree = 16 << 20
)

// counting reads blocks, and has all texts of the answer counted before a long one is put together.
func (b *viewer) counting(read Reader) Reader {
	b.plain = read
	return func(l protocol.Link) ([]byte, error) {
		data, err := read(l)
		if err != nil || b.counted || !protocol.IsChunks(data) {
			return data, err
		}
		c, err := protocol.DecodeChunks(data)
		if err != nil {
			return data, nil // which who asked for it says in its words
		}
		return data, b.room(c.Size)
	}
}

// room adds what is read of a step, and counts the rest once that is much.
func (b *viewer) room(more int64) error {
	if b.gathered += more; b.counted || b.gathered <= viewFree {
		return nil
	}
	b.counted = true
	sizes := map[protocol.Link]int64{}
	all := int64(0)
	for _, st := range b.v.Steps {
		n, err := b.sizeOf(b.steps[st.ID], sizes)
		if err != nil {
			return err
		}
		if all += n; all > viewMax && b.most == 0 {
			return protocol.ErrTooLarge.With("wf show RUN:STEP shows one step, and wf log RUN -o jsonl what happened",
				"run %s: the texts of the steps that are asked for have more than %d bytes, too much for one answer", b.v.ID, viewMax)
		}
	}
	return nil
}

// sizeOf is how many bytes the texts of a step have, without those of its chunks being read.
func (b *viewer) sizeOf(st *shown, sizes map[protocol.Link]int64) (n int64, err error) {
	if b.brief {
		return 0, nil
	}
	links := []protocol.Link{st.prompt.Link}
	if st.record.Defined() {
		var r protocol.StepRecord
		if err := decode(b.plain, st.record, &r); err != nil {
			return 0, err
		}
		n = int64(len(r.EdgePrompt))
		links = append(links, r.Output, r.Data, r.Inject)
	}
	for _, l := range links {
		if !l.Defined() {
			continue
		}
		size, known := sizes[l]
		if !known {
			p, err := protocol.OpenPayload(b.plain, l)
			if err != nil {
				return 0, err
			}
			size = p.Size
			sizes[l] = size
		}
		n += size
	}
	return n, nil
}
