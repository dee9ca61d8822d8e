package pgstore

import (
	"context"
	"fmt"
	"time"
)

// A Note is a text that processes change, one at a time: what a schedule has seen.
type Note struct {
	s    *Store
	name string
}

// Note is the note of a name.
func (s *Store) Note(name string) *Note { return &Note{s, name} }

const (
	readNote = `select n, body from wf.notes where name = $1`
	// What another process has changed meanwhile is left as it is, and no row comes back.
	writeNote = `insert into wf.notes as w (name, n, body) values ($1, 1, $3) on conflict (name) do update set n = w.n + 1, body = excluded.body where w.n = $2 returning n`
)

// noteTime bounds a change, also while the database is away: the caller tries again.
const noteTime = 30 * time.Second

// Change has do make another text of the one that is there, nil for none; nil leaves it. Where another process was faster do is called again, with what that
// one wrote. It returns when the text is durable. After an error it may be.
func (t *Note) Change(do func(old []byte) (text []byte, err error)) error {
	ctx, cancel := context.WithTimeout(t.s.life, noteTime)
	defer cancel()
	for {
		got, err := t.s.query(ctx, readNote, text(t.name))
		if err != nil {
			return fmt.Errorf("note %s: %w", t.name, err)
		}
		var n int64
		var old []byte
		if len(got) == 1 {
			n, old = readLong(got[0][0]), got[0][1]
		}
		body, err := do(old)
		if err != nil || body == nil {
			return err
		}
		got, err = t.s.query(ctx, writeNote, text(t.name), long(n), bytea(body))
		if err != nil {
			return fmt.Errorf("note %s: %w", t.name, err)
		}
		if len(got) == 1 {
			return nil
		}
	}
}
