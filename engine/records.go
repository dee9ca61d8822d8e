package engine

import (
	"context"
	"slices"

	"wf/cas"
	"wf/engine/rules"
	"wf/protocol"
	"wf/protocol/tree"
)

// records is what the rules read, in the blocks of a store.
type records struct {
	lib  *library
	read Reader
}

// records reads what journals name by read; definitions are compiled once for all of lib's.
func (lib *library) records(read Reader) rules.Records { return records{lib, read} }

func (e *Engine) records(ctx context.Context) rules.Records { return e.lib.records(e.reader(ctx)) }

func (r records) Open(start protocol.Link) (*rules.Opened, error) { return r.lib.open(start, r.read) }

func (r records) Step(record protocol.Link) (*protocol.StepRecord, error) {
	out := new(protocol.StepRecord)
	return out, decode(r.read, record, out)
}

func (r records) Payload(l protocol.Link) ([]byte, error) { return protocol.PayloadBytes(r.read, l) }

func (r records) Files(root protocol.Link, most int) (first []rules.File, count int, err error) {
	for it, err := range tree.Walk(tree.Read(r.read), root) {
		if err != nil {
			return nil, 0, err
		}
		if it.Mode == tree.Omitted {
			continue
		}
		if count++; len(first) < most {
			first = append(first, rules.File{Path: it.Path, Mode: string(it.Mode), Size: it.Size, Link: it.Link})
		}
	}
	return first, count, nil
}

func (r records) Data(e protocol.Event) (protocol.Data, error) { return e.AnyData() }

func (r records) Name(payload []byte) protocol.Link {
	root, _ := cas.Payload(payload)
	return root
}

// maxMade bounds the records that a driver keeps of visits that ended just now.
const maxMade = 64

// drivenRecords are those of a driver: what it made just now need not be decoded.
type drivenRecords struct {
	records
	made map[protocol.Link]*protocol.StepRecord
}

func (r *drivenRecords) Step(record protocol.Link) (*protocol.StepRecord, error) {
	if made := r.made[record]; made != nil {
		return made, nil
	}
	return r.records.Step(record)
}

// keep keeps a record that was just made.
func (r *drivenRecords) keep(l protocol.Link, record *protocol.StepRecord) {
	if len(r.made) >= maxMade {
		clear(r.made)
	}
	r.made[l] = record
}

// textOf is a text of an event, fetched where it was moved to a block.
func textOf(read Reader, t protocol.Text) (string, error) {
	return t.Read(func(l protocol.Link) ([]byte, error) { return protocol.PayloadBytes(read, l) })
}

// dataOf is the data of an event of one of some types, nil for any other.
func dataOf(x *protocol.Entry, types ...protocol.EventType) (protocol.Data, error) {
	if !slices.Contains(types, x.Type) {
		return nil, nil
	}
	return x.AnyData()
}
