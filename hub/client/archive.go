package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"sync"
)

// download copies what GET path answers, of any length, to w.
func (a *API) download(ctx context.Context, path string, w io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+path, nil)
	if err != nil {
		return err
	}
	a.Authorize(req.Header)
	answer, err := a.via.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return unreachable(err)
	}
	defer answer.Body.Close()
	if err := failureOf(answer); err != nil {
		return err
	}
	var to errWriter
	to.Writer = w
	switch _, err := io.Copy(&to, answer.Body); {
	case to.err != nil:
		return to.err
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("GET %s: the answer broke off: %w: %w", path, ErrUnreachable, err)
	}
	return nil
}

// errWriter keeps the error of its Writer apart from those of what is copied to it.
type errWriter struct {
	io.Writer
	err error
}

func (w *errWriter) Write(b []byte) (n int, err error) {
	n, err = w.Writer.Write(b)
	w.err = err
	return n, err
}

// upload sends what comes from r, of any length, to POST path, and reads the answer into out. The server is asked
// first whether it takes it at all.
func (a *API) upload(ctx context.Context, path string, r io.Reader, out any) error {
	from := &errReader{Reader: r}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+path, from)
	if err != nil {
		return err
	}
	req.ContentLength = lengthOf(r)
	req.Header.Set("Content-Type", "application/vnd.ipld.car")
	req.Header.Set("Expect", "100-continue")
	a.Authorize(req.Header)
	answer, err := a.via.Do(req)
	if err != nil {
		switch failed := from.failed(); {
		case failed != nil:
			return failed
		case ctx.Err() != nil:
			return ctx.Err()
		}
		return unreachable(err)
	}
	defer answer.Body.Close()
	if err := failureOf(answer); err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("POST %s: the answer broke off: %w: %w", path, ErrUnreachable, err)
	case len(b) > maxAnswer:
		return tooLong(http.MethodPost, path)
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("POST %s: the answer is no JSON: %w", path, err)
	}
	return nil
}

// lengthOf is how many bytes are still to be read, −1 where that is not known.
func lengthOf(r io.Reader) int64 {
	f, ok := r.(interface {
		io.Seeker
		Stat() (fs.FileInfo, error)
	})
	if !ok {
		return -1
	}
	info, err := f.Stat()
	at, seek := f.Seek(0, io.SeekCurrent)
	if err != nil || seek != nil || !info.Mode().IsRegular() || info.Size() <= at {
		return -1
	}
	return info.Size() - at
}

// errReader keeps the error of its Reader apart from those of where it is sent. It may be read still when the
// server has answered.
type errReader struct {
	io.Reader
	mu  sync.Mutex
	err error
}

func (r *errReader) Read(b []byte) (n int, err error) {
	n, err = r.Reader.Read(b)
	if err != nil && err != io.EOF {
		r.mu.Lock()
		r.err = err
		r.mu.Unlock()
	}
	return n, err
}

func (r *errReader) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
