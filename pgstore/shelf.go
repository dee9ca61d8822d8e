package pgstore

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
)

// A Shelf has files that any process may read and replace: a cache that all machines of a store share. A file is written once; a list names
// those that count, and one process at a time puts another list in its place. Files and list are notes, and need no rights of their own:
//
//	NAME             the list, and how often it was replaced
//	NAME/FILE/PAGE   pageSize bytes of a file; the last page may be shorter
type Shelf struct {
	s    *Store
	name string
}

// Shelf is the shelf of a name without slashes.
func (s *Store) Shelf(name string) *Shelf { return &Shelf{s, name} }

// A Part is where something lies in a file.
type Part struct {
	File     string // without slashes
	At, Size int    // in bytes
}

const (
	pageSize = 32 << 10
	putPages = 128 // that are sent at once
)

const (
	readList  = `select n, body from wf.notes where name = $1`
	readPages = `select p.i, w.body from unnest($1::text[]) with ordinality p(name, i) join wf.notes w using (name)`
	putPage   = `insert into wf.notes(name, n, body) select name, 1, body from unnest($1::text[], $2::bytea[]) p(name, body) order by name on conflict (name) do nothing`
	// Behind another list nothing is removed. Of two that find none at once the second waits for the first, and sees its list.
	replaceList = `with listed as (insert into wf.notes as w (name, n, body) values ($1, 1, $3) on conflict (name) do update set n = w.n + 1, body = excluded.body where w.n = $2 returning n),
	gone as (delete from wf.notes where name > $1 || '/' and name < $1 || '0' and not exists (select from unnest($4::text[]) f where f = split_part(name, '/', 2)) and exists (select from listed))
	select n from listed`
)

func (h *Shelf) page(file string, i int) string { return fmt.Sprintf("%s/%s/%06x", h.name, file, i) }

// List reads the list, nil for none, and how often it was replaced.
func (h *Shelf) List(ctx context.Context) (list []byte, n int64, err error) {
	got, err := h.s.query(ctx, readList, text(h.name))
	if err != nil {
		return nil, 0, h.err(err)
	}
	if len(got) == 0 {
		return nil, 0, nil
	}
	return got[0][1], readLong(got[0][0]), nil
}

// Number is how often the list was replaced.
func (h *Shelf) Number(ctx context.Context) (int64, error) {
	got, err := h.s.query(ctx, `select n from wf.notes where name = $1`, text(h.name))
	if err != nil || len(got) == 0 {
		return 0, h.err(err)
	}
	return readLong(got[0][0]), nil
}

// Read reads parts of files, with one question to the server. Where a file ends before, or a page of it is gone, a part is shorter; of a part without a byte the
// error wraps fs.ErrNotExist.
func (h *Shelf) Read(ctx context.Context, parts []Part) ([][]byte, error) {
	var names []string
	for _, p := range parts {
		for i := p.At / pageSize; i*pageSize < p.At+p.Size; i++ {
			names = append(names, h.page(p.File, i))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	got, err := h.s.query(ctx, readPages, texts(names))
	if err != nil {
		return nil, h.err(err)
	}
	pages := make(map[string][]byte, len(got))
	for _, r := range got {
		pages[names[readLong(r[0])-1]] = r[1]
	}
	out := make([][]byte, len(parts))
	for i, p := range parts {
		b := make([]byte, 0, p.Size)
		for len(b) < p.Size {
			at := p.At + len(b)
			page := pages[h.page(p.File, at/pageSize)]
			from := at % pageSize
			if from >= len(page) {
				if len(b) > 0 {
					break
				}
				return nil, fmt.Errorf("%s, byte %d of %s: %w", h.name, at, p.File, fs.ErrNotExist)
			}
			b = append(b, page[from:min(len(page), from+p.Size-len(b))]...)
		}
		out[i] = b
	}
	return out, nil
}

// Put writes a file, whose name no other one has had. It is removed by the next Replace that does not have it stay.
func (h *Shelf) Put(ctx context.Context, file string, data []byte) error {
	pages := slices.Collect(slices.Chunk(data, pageSize))
	for at := 0; at < len(pages); at += putPages {
		some := pages[at:min(len(pages), at+putPages)]
		names := make([]string, len(some))
		for i := range some {
			names[i] = h.page(file, at+i)
		}
		if _, err := h.s.query(ctx, putPage, texts(names), byteas(some)); err != nil {
			return h.err(err)
		}
	}
	return nil
}

// Remove removes a file that no list has named.
func (h *Shelf) Remove(ctx context.Context, file string) error {
	_, err := h.s.query(ctx, `delete from wf.notes where name > $1 || '/' and name < $1 || '0'`, text(h.name+"/"+file))
	return h.err(err)
}

// Replace puts a list in the place of the one that was replaced n times, and removes all files but some. ok is false where another process has
// replaced it meanwhile: then nothing is changed. After an error it may be.
func (h *Shelf) Replace(ctx context.Context, n int64, list []byte, stay []string) (now int64, ok bool, err error) {
	got, err := h.s.query(ctx, replaceList, text(h.name), long(n), bytea(list), texts(stay))
	if err != nil || len(got) == 0 {
		return 0, false, h.err(err)
	}
	return readLong(got[0][0]), true, nil
}

func (h *Shelf) err(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s in the database: %w", h.name, err)
}
