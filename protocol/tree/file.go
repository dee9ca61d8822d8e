package tree

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"wf/protocol"
	"wf/protocol/dagcbor"
)

// WholeMax is the length in bytes of the longest file that is one raw block.
const WholeMax = 64 << 10

// PartMin and PartMax bound the parts of a longer file, the last one excepted, which may be shorter. They
// have 32 KiB on average.
const (
	PartMin = 16 << 10
	PartMax = 64 << 10
)

// window is how many bytes decide whether a part ends behind them; cutBits is how many bits of their hash
// must be zero.
const (
	window  = 64
	cutBits = 14
)

// gear is the published table: entry i is the first 8 bytes, big-endian, of the SHA-256 of "wf.gear" and
// the byte i.
var gear = sync.OnceValue(func() *[256]uint64 {
	t := new([256]uint64)
	for i := range t {
		sum := sha256.Sum256(append([]byte("wf.gear"), byte(i)))
		t[i] = binary.BigEndian.Uint64(sum[:])
	}
	return t
})

// Cut is the length of the part that data begins with; data is all that is left of the file, or at least
// PartMax bytes of it. A part ends behind the first byte, from PartMin on, where the highest 14 bits of the
// hash of the last 64 bytes are zero. The hash of bytes is 0 for none, and doubled plus the gear of the
// next byte for each.
func Cut(data []byte) int {
	if len(data) <= PartMin {
		return len(data)
	}
	t := gear()
	var h uint64
	for _, b := range data[PartMin-window : PartMin] {
		h = h<<1 + t[b]
	}
	n := min(len(data), PartMax)
	for i, b := range data[PartMin:n] {
		if h>>(64-cutBits) == 0 {
			return PartMin + i
		}
		h = h<<1 + t[b]
	}
	return n
}

// Content reads a file of size bytes into blocks, which put takes: a raw block, or the parts and then the
// record of them, which is the last. A reader that has more or fewer bytes is an error wrapping ErrChanged.
func Content(r io.Reader, size int64, put func(Block) error) (protocol.Link, error) {
	if size <= WholeMax {
		b := make([]byte, size)
		if err := exactly(r, b); err != nil {
			return protocol.Link{}, err
		}
		whole := Raw(b)
		return whole.Link, put(whole)
	}
	var parts []protocol.Link
	buf := make([]byte, 0, 4*PartMax)
	for read := int64(0); read < size || len(buf) > 0; {
		if len(buf) < PartMax && read < size {
			n := len(buf)
			buf = buf[:n+int(min(int64(cap(buf)-n), size-read))]
			if _, err := io.ReadFull(r, buf[n:]); err != nil {
				return protocol.Link{}, changed(err)
			}
			read += int64(len(buf) - n)
		}
		n := Cut(buf)
		part := Raw(bytes.Clone(buf[:n]))
		if err := put(part); err != nil {
			return protocol.Link{}, err
		}
		parts = append(parts, part.Link)
		buf = append(buf[:0:cap(buf)], buf[n:]...)
	}
	if err := exactly(r, nil); err != nil {
		return protocol.Link{}, err
	}
	top := record(encodeFile(size, parts))
	return top.Link, put(top)
}

// ErrChanged is a file that was changed while it was read.
var ErrChanged = errors.New("it was changed while it was read")

// exactly fills b, behind which nothing may follow.
func exactly(r io.Reader, b []byte) error {
	if _, err := io.ReadFull(r, b); err != nil {
		return changed(err)
	}
	var more [1]byte
	switch n, err := r.Read(more[:]); {
	case n > 0:
		return ErrChanged
	case err != nil && err != io.EOF:
		return err
	}
	return nil
}

func changed(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrChanged
	}
	return err
}

func encodeFile(size int64, parts []protocol.Link) []byte {
	b := make([]byte, 0, 48+41*len(parts))
	b = dagcbor.AppendHead(b, dagcbor.Map, 4)
	b = dagcbor.AppendInt(dagcbor.AppendText(b, "v"), Version)
	b = dagcbor.AppendText(dagcbor.AppendText(b, "kind"), protocol.KindFile)
	b = dagcbor.AppendInt(dagcbor.AppendText(b, "size"), size)
	return appendLinks(dagcbor.AppendText(b, "parts"), parts)
}

// DecodeFile reads the record of a long file. What Content would not have written is an error wrapping
// protocol.ErrInvalidBlock.
func DecodeFile(data []byte) (size int64, parts []protocol.Link, err error) {
	w := dagcbor.Walk{B: data, Strict: true}
	keys := count(&w, dagcbor.Map)
	if err := begin(&w, protocol.KindFile); err != nil {
		return 0, nil, err
	}
	key(&w, "size")
	size = w.Number()
	key(&w, "parts")
	parts = links(&w)
	if !w.Ended() || keys != 4 || !bytes.Equal(encodeFile(size, parts), data) {
		return 0, nil, invalid("file", cause(&w))
	}
	n := int64(len(parts))
	if size <= WholeMax || size > n*PartMax || size <= (n-1)*PartMin {
		return 0, nil, invalid("file", fmt.Sprintf("%d bytes cannot be in %d parts", size, n))
	}
	for _, p := range parts {
		if !isRaw(p) {
			return 0, nil, invalid("file", "a part is no raw block")
		}
	}
	return size, parts, nil
}

// Read fetches a block; its bytes have the hash that the link says.
type Read func(protocol.Link) ([]byte, error)

// A Reader reads the content of a file of a tree. It holds one part at a time.
type Reader struct {
	read  Read
	size  int64
	at    int64
	parts []protocol.Link
	ends  []int64 // where parts end, as far as they were read
	part  int     // the one in buf
	buf   []byte
}

var _ io.ReadSeeker = (*Reader)(nil)

// Open opens a file or the text of a link. Another entry is an error wrapping protocol.ErrNotFound.
func Open(read Read, e Entry) (*Reader, error) {
	if e.Mode != File && e.Mode != Exec && e.Mode != Link {
		return nil, fmt.Errorf("%q is %s, and has no content: %w", e.Name, e.Mode, protocol.ErrNotFound)
	}
	r := &Reader{read: read, size: e.Size, parts: []protocol.Link{e.Link}, part: -1}
	if isRaw(e.Link) {
		return r, nil
	}
	b, err := read(e.Link)
	if err != nil {
		return nil, err
	}
	size, parts, err := DecodeFile(b)
	if err == nil && size != e.Size {
		err = fmt.Errorf("%q has %d bytes, and its directory says %d: %w", e.Name, size, e.Size, protocol.ErrCorrupt)
	}
	r.parts = parts
	return r, err
}

// Size is the length in bytes.
func (r *Reader) Size() int64 { return r.size }

// Read reads on. Parts that do not have the bytes that are said of them are an error wrapping protocol.ErrCorrupt.
func (r *Reader) Read(p []byte) (int, error) {
	if r.at >= r.size {
		return 0, io.EOF
	}
	i, _ := slices.BinarySearch(r.ends, r.at+1) // the first part that ends behind r.at
	for {
		if i == len(r.parts) {
			return 0, fmt.Errorf("the parts of a file have %d of %d bytes: %w", r.ends[i-1], r.size, protocol.ErrCorrupt)
		}
		if err := r.load(i); err != nil {
			return 0, err
		}
		if r.at < r.ends[i] {
			break
		}
		i++
	}
	n := copy(p, r.buf[int64(len(r.buf))-(r.ends[i]-r.at):])
	r.at += int64(n)
	return n, nil
}

// load reads part i; those before it were read.
func (r *Reader) load(i int) error {
	if r.part == i {
		return nil
	}
	b, err := r.read(r.parts[i])
	if err != nil {
		return err
	}
	r.part, r.buf = i, b
	if i < len(r.ends) {
		return nil
	}
	end := int64(len(b))
	if i > 0 {
		end += r.ends[i-1]
	}
	if end > r.size || i == len(r.parts)-1 && end != r.size {
		return fmt.Errorf("the parts of a file have not the %d bytes that it says: %w", r.size, protocol.ErrCorrupt)
	}
	r.ends = append(r.ends, end)
	return nil
}

// Seek moves to where the next Read begins. What lies before it is read on the way, once.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.size
	}
	if offset < 0 {
		return 0, errors.New("a place before the beginning of the file")
	}
	r.at = offset
	return offset, nil
}
