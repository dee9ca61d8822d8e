package service

import (
	"context"
	"io"

	"wf/api"
	"wf/cas"
	"wf/protocol"
)

// Brought is what Bring has sent.
type Brought struct {
	Blocks int // that the archive of the run has
	Sent   int // of them, since they were not there
}

// Bring has a store take over a run of another one, with its sub-workflows and the files that it recorded; either may be at a server. What is there is not
// sent again: the source says which blocks the archive of the run has, and the destination which of them it lacks. It imports an archive of these, and
// proves the whole run before its head moves. A Bring that is cut off has changed nothing there. tell is called as it goes on; nil is not.
func Bring(ctx context.Context, from, to api.Archive, run protocol.RunID, o api.ImportOptions, tell func(Brought)) (*api.Imported, Brought, error) {
	var record protocol.Archive
	var lacking []protocol.Link
	var done Brought
	if tell == nil {
		tell = func(Brought) {}
	}
	var some []protocol.Link // that are about to be asked for
	ask := func() error {
		if len(some) == 0 {
			return nil
		}
		not, err := to.Lacking(ctx, some)
		there := make(map[protocol.Link]bool, len(some))
		for _, l := range some {
			there[l] = true
		}
		for _, l := range not { // a server is given no other block of this store, whatever it asks for
			if there[l] {
				lacking, there[l] = append(lacking, l), false
			}
		}
		done.Blocks, some = done.Blocks+len(some), nil
		tell(done)
		return err
	}
	err := from.Contents(ctx, run, api.ExportOptions{Files: true},
		func(a protocol.Archive) error { record = a; return nil },
		func(more []protocol.Link) error {
			for _, l := range more {
				if some = append(some, l); len(some) == api.BlocksMost {
					if err := ask(); err != nil {
						return err
					}
				}
			}
			return nil
		})
	if err == nil {
		err = ask()
	}
	if err != nil {
		return nil, done, err
	}
	parts := &parts{ctx: ctx, from: from, run: run, left: lacking, asked: func(n int) {
		done.Sent += n
		tell(done)
	}}
	archive, over := parts.archive(record)
	got, err := to.Import(ctx, archive, o)
	_ = archive.Close() // what is left of it is not read
	<-over
	return got, done, err
}

// parts are the blocks that an archive is made of, asked for some at a time.
type parts struct {
	ctx   context.Context
	from  api.Archive
	run   protocol.RunID
	left  []protocol.Link
	asked func(n int)
}

// archive is an archive of them; over is closed when nothing is asked for any more.
func (p *parts) archive(record protocol.Archive) (archive io.ReadCloser, over <-chan struct{}) {
	r, w := io.Pipe()
	end := make(chan struct{})
	go func() {
		defer close(end)
		_, err := cas.JoinParts(w, record, p.next)
		w.CloseWithError(err)
	}()
	return r, end
}

// next asks for the next ones.
func (p *parts) next() ([]protocol.Link, io.ReadCloser, error) {
	if len(p.left) == 0 {
		return nil, nil, io.EOF
	}
	n := min(len(p.left), api.BlocksMost)
	some := p.left[:n]
	p.left = p.left[n:]
	p.asked(n)
	r, w := io.Pipe()
	go func() { w.CloseWithError(p.from.Parts(p.ctx, p.run, some, w)) }()
	return some, r, nil
}
