package words

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"wf/store"
)

// rows are an index in a database. What one process has indexed all of them search, and what is deleted is gone for all. Its stamp is the number of its
// list: of several that write at once one is first, and the others do again what is left to do.
type rows struct {
	store.Shelf
	former folder // an index of this machine alone, as an earlier wf made it
}

// readMost is how many bytes are asked for at once.
const readMost = 4 << 20

func (r rows) stamp(ctx context.Context) (string, error) {
	n, err := r.Number(ctx)
	if err != nil || n == 0 {
		return "", err
	}
	return strconv.FormatInt(n, 10), nil
}

func (r rows) names(ctx context.Context) ([]string, error) {
	list, _, err := r.List(ctx)
	if err != nil || list == nil {
		return nil, err
	}
	return segmentsOf(list)
}

func (r rows) read(ctx context.Context, names []string, wanted func(i int) []part, each func(i int, r io.ReaderAt) error) error {
	for from := 0; from < len(names); {
		var parts []store.Part
		var ends []int // by segment, of its parts
		for i, bytes := from, 0; i < len(names) && (i == from || bytes < readMost); i++ {
			for _, p := range wanted(i) {
				parts = append(parts, store.Part{File: names[i], At: p.at, Size: p.size})
				bytes += p.size
			}
			ends = append(ends, len(parts))
		}
		got, err := r.Read(ctx, parts)
		if err != nil {
			return err
		}
		at := 0
		for _, end := range ends {
			if err := each(from, &rowsOf{ctx, r, names[from], parts[at:end], got[at:end]}); err != nil {
				return err
			}
			from, at = from+1, end
		}
	}
	return nil
}

// rowsOf is a segment of which some parts were read.
type rowsOf struct {
	ctx   context.Context
	of    rows
	name  string
	parts []store.Part
	data  [][]byte
}

func (o *rowsOf) ReadAt(b []byte, at int64) (int, error) {
	for i, p := range o.parts {
		if from := int(at) - p.At; from >= 0 && from+len(b) <= len(o.data[i]) {
			return copy(b, o.data[i][from:]), nil
		}
	}
	got, err := o.of.Read(o.ctx, []store.Part{{File: o.name, At: int(at), Size: len(b)}})
	if err != nil {
		return 0, err
	}
	return copy(b, got[0]), nil
}

// lock needs none. What is left of an index of this machine is removed, since nothing drops words of deleted runs from that any more; where it cannot be, it is
// still this user's alone.
func (r rows) lock(ctx context.Context) (func(), error) {
	_ = r.former.remove(ctx)
	return func() {}, nil
}

func (r rows) drop(ctx context.Context, name string) error { return r.Remove(ctx, name) }

func (r rows) put(ctx context.Context, data []byte) (string, error) {
	name := segmentName()
	return name, r.Put(ctx, name, data)
}

func (r rows) count(ctx context.Context, since string, names []string) (string, error) {
	n := int64(0)
	if since != "" {
		var err error
		if n, err = strconv.ParseInt(since, 10, 64); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(manifest{manifestSchema, names})
	if err != nil {
		return "", err
	}
	now, ok, err := r.Replace(ctx, n, list, names)
	if err == nil && !ok {
		err = errMoved
	}
	return strconv.FormatInt(now, 10), err
}

func (r rows) exists(ctx context.Context) bool {
	n, err := r.Number(ctx)
	return n > 0 || err != nil
}

func (r rows) remove(ctx context.Context) error {
	for {
		now, err := r.stamp(ctx)
		if err == nil {
			_, err = r.count(ctx, now, nil)
		}
		if !errors.Is(err, errMoved) {
			return err
		}
	}
}

func (r rows) String() string {
	return fmt.Sprintf("the rows of wf.notes whose names begin with %q", Dir)
}
