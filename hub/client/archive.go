package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
	return a.copied(req, w)
}

// ask copies what POST path answers to a question, of any length, to w.
func (a *API) ask(ctx context.Context, path string, in any, w io.Writer) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	return a.copied(req, w)
}

func (a *API) copied(req *http.Request, w io.Writer) error {
	answer, err := a.send(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	to := errWriter{Writer: w}
	switch _, err := io.Copy(&to, answer.Body); {
	case to.err != nil:
		return to.err
	case req.Context().Err() != nil:
		return req.Context().Err()
	case err != nil:
		return fmt.Errorf("%s %s: the answer broke off: %w: %w", req.Method, req.URL.Path, ErrUnreachable, err)
	}
	return nil
}

// maxLine is how long a line of an answer is at most: the record of an archive names each run of a sub-workflow, of which there may be many.
const maxLine = 64 << 20

// lines calls f with each line of what GET path answers.
func (a *API) lines(ctx context.Context, path string, f func([]byte) error) error {
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := a.download(ctx, path, w)
		w.CloseWithError(err)
		done <- err
	}()
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	var failed error
	for failed == nil && in.Scan() {
		failed = f(in.Bytes())
	}
	if failed = cmp.Or(failed, in.Err()); errors.Is(failed, bufio.ErrTooLong) {
		failed = fmt.Errorf("GET %s: a line of the answer has more than %d bytes", path, maxLine)
	}
	r.CloseWithError(cmp.Or(failed, io.ErrClosedPipe))
	if err := <-done; failed == nil {
		return err
	}
	return failed
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
	answer, err := a.send(req)
	if answer == nil { // the archive may have failed, and nothing else
		return cmp.Or(from.failed(), err)
	}
	if err != nil {
		return err
	}
	return receive("POST "+path, answer, out)
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
