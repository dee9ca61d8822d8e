package hook

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"wf/files"
	"wf/protocol"
)

// The file of a spool is frames, one behind the other:
//
//	"wfe1" ‖ length of the record, 4 bytes big-endian ‖ the first 16 bytes of HMAC-SHA256(key, length ‖ record) ‖ record
//
// A record is JSON: an event that was kept, or the requests of events that have begun. It is only appended to, emptied when
// nothing waits, and written anew when most of it has begun.

const (
	magic     = "wfe1"
	sealSize  = 16
	headSize  = len(magic) + 4 + sealSize
	eventFile = "events"
	// slack is how many bytes of begun events a file has before it is written anew.
	slack = 4 << 20
)

// A record is what a frame holds: one of its fields.
type record struct {
	Kept  *Kept    `json:"kept,omitempty"`
	Begun []string `json:"begun,omitempty"` // requests
}

// A spoolFile is the file. All but read is called by one goroutine at a time: see Spool.write.
type spoolFile struct {
	path string
	key  []byte
	end  int64 // of what is whole
	// torn is set while there may be something behind end.
	torn bool

	swap sync.RWMutex // held while f, and where items lie in it, are another file's
	f    *os.File
	anew int64 // bytes of begun events with which it is tried again to write the file anew; 0 is slack
}

// frame makes a frame. Inputs are kept as they are: their bytes are hashed by the run.
func (s *spoolFile) frame(r record) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, headSize))
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return nil, err
	}
	out := b.Bytes()
	copy(out, magic)
	binary.BigEndian.PutUint32(out[len(magic):], uint32(len(out)-headSize))
	copy(out[headSize-sealSize:], s.seal(out[len(magic):len(magic)+4], out[headSize:]))
	return out, nil
}

func (s *spoolFile) seal(length, body []byte) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write(length)
	m.Write(body)
	return m.Sum(nil)[:sealSize]
}

// sized is the length of the frame with a head, 0 where it is none.
func sized(head []byte) int64 {
	if string(head[:len(magic)]) != magic {
		return 0
	}
	return int64(headSize) + int64(binary.BigEndian.Uint32(head[len(magic):]))
}

// open reads a frame.
func (s *spoolFile) open(frame []byte) (r record, err error) {
	if len(frame) < headSize || sized(frame) != int64(len(frame)) ||
		!hmac.Equal(frame[headSize-sealSize:headSize], s.seal(frame[len(magic):len(magic)+4], frame[headSize:])) {
		return r, errDamaged
	}
	return r, json.Unmarshal(frame[headSize:], &r)
}

var errDamaged = fmt.Errorf("what was kept of the event is damaged, or was written by another user: %w", protocol.ErrCorrupt)

// read reads the frame of an item.
func (s *spoolFile) read(it *item) ([]byte, error) {
	s.swap.RLock()
	defer s.swap.RUnlock()
	frame := make([]byte, it.size)
	_, err := s.f.ReadAt(frame, it.at)
	return frame, err
}

// append writes frames behind what is there, and has them on disk where sync is set. After an error nothing was appended.
func (s *spoolFile) append(b []byte, sync bool) error {
	if s.torn {
		if err := s.f.Truncate(s.end); err != nil {
			return err
		}
		s.torn = false
	}
	_, err := s.f.WriteAt(b, s.end)
	if err == nil && sync {
		err = s.f.Sync()
	}
	if err != nil {
		s.torn = true // what is there of it, no answer said so
		if s.f.Truncate(s.end) == nil {
			s.torn = false
		}
		return fmt.Errorf("%s: %w", s.path, err)
	}
	s.end += int64(len(b))
	return nil
}

// empty forgets all.
func (s *spoolFile) empty() error {
	if s.end == 0 && !s.torn {
		return nil
	}
	if err := s.f.Truncate(0); err != nil {
		return err
	}
	s.end, s.torn = 0, false
	return nil
}

// rewrite puts a file with these items alone, in order, in the place of the file.
func (s *spoolFile) rewrite(all []*item) (err error) {
	path := s.path + ".new"
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := files.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(path))
		}
	}()
	w, end := bufio.NewWriterSize(f, 1<<20), int64(0)
	places := make([]int64, len(all))
	for i, it := range all {
		frame, err := s.read(it)
		if err != nil {
			return err
		}
		if _, err := w.Write(frame); err != nil {
			return err
		}
		places[i], end = end, end+it.size
	}
	if err := errors.Join(w.Flush(), f.Sync()); err != nil {
		return err
	}
	s.swap.Lock()
	defer s.swap.Unlock()
	if err := os.Rename(path, s.path); err != nil {
		return err
	}
	for i, it := range all {
		it.at = places[i]
	}
	old := s.f
	s.f, s.end, s.torn = f, end, false
	// The name may lead to the old file after a loss of power: its events begin once more, by which nothing happens.
	return errors.Join(old.Close(), files.SyncDir(filepath.Dir(s.path)))
}

func (s *spoolFile) close() error { return s.f.Close() }

// What is read of a file at once, in bytes: it may be that of a clone. A frame is one event, which has at most half of MaxBytes, or the
// requests of events that have begun. Behind what is damaged frames are looked for in so many bytes before their hashes are counted anew.
const (
	mostFrame = MaxBytes / 2
	mostFile  = MaxBytes
)

// scan calls each for the frames of a file, in order. lost are the bytes that are no frame of ours, between are those of them with
// frames behind them: what was being written when the machine lost its power is the last.
func (s *spoolFile) scan(f io.ReaderAt, size int64, each func(r record, frame []byte, at int64)) (lost, between int64, err error) {
	in, at := bufio.NewReaderSize(io.NewSectionReader(f, 0, size), 1<<20), int64(0)
	for at < size {
		frame, err := nextFrame(in, size-at)
		if err != nil {
			return lost, between, err
		}
		r, bad := s.open(frame)
		if bad == nil {
			each(r, frame, at)
			at += int64(len(frame))
			between = lost
			continue
		}
		skip, err := s.skip(f, at, size)
		if err != nil {
			return lost, between, err
		}
		lost += skip
		at += skip
		in.Reset(io.NewSectionReader(f, at, size-at))
	}
	return lost, between, nil
}

// nextFrame reads what says that it is a frame; nil is for what is none.
func nextFrame(in *bufio.Reader, left int64) ([]byte, error) {
	head, err := in.Peek(headSize)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	n := sized(head)
	if n == 0 || n > left || n > mostFrame {
		return nil, nil
	}
	frame := make([]byte, n)
	if _, err = io.ReadFull(in, frame); errors.Is(err, io.ErrUnexpectedEOF) { // it was emptied meanwhile
		return nil, nil
	}
	return frame, err
}

// skip is how far it is from what is no frame to the next one, to the end of the file, or to where it is to be looked for further.
func (s *spoolFile) skip(f io.ReaderAt, at, size int64) (int64, error) {
	end, tried, window, from := min(size, at+mostFile), int64(0), make([]byte, 1<<20), at+1
	for end-from >= int64(headSize) {
		n, err := f.ReadAt(window[:min(int64(len(window)), end-from)], from)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if n < headSize { // it was emptied meanwhile
			break
		}
		for next := 0; ; next++ {
			i := bytes.Index(window[next:n], []byte(magic))
			if i < 0 {
				from += int64(n - len(magic) + 1)
				break
			}
			if next += i; n-next < headSize {
				from += int64(next)
				break
			}
			length := sized(window[next:n])
			if length > min(mostFrame, size-from-int64(next)) {
				continue
			}
			if tried += length; tried > 2*(end-at) { // what looks like frames is hashed twice at most
				return end - at, nil
			}
			frame := make([]byte, length)
			if _, err := f.ReadAt(frame, from+int64(next)); err != nil && !errors.Is(err, io.EOF) {
				return 0, err
			}
			if _, err := s.open(frame); err == nil {
				return from + int64(next) - at, nil
			}
		}
	}
	if end < size {
		return from - at, nil
	}
	return size - at, nil
}
