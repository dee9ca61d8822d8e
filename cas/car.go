package cas

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/ipfs/go-cid"

	"wf/protocol"
	"wf/protocol/dagcbor"
)

// A CAR file, version 1 (IPLD specification "Content Addressable aRchives"):
//
//	uvarint(length) ‖ DAG-CBOR {roots: [link…], version: 1}
//	uvarint(length) ‖ CID ‖ bytes        once for each block
//
// Version 2 wraps one of these; only the wrapped part is read.

// carSectionMax bounds one section: a length beyond it is damage, or an attack.
const carSectionMax = 32 << 20

// BlockMax is the length in bytes of the longest block that a store takes: with its CID it fills
// a section of an archive, so that whatever is stored can be exported and imported. Payloads are
// never that long (see Payload); a record would have to hold some million links.
const BlockMax = carSectionMax - 36

// carV2Pragma opens a version 2 file; it is a version 1 header without roots.
const carV2Pragma = "\x0a\xa1\x67version\x02"

type carHeader struct {
	Roots   []protocol.Link `cbor:"roots"`
	Version uint64          `cbor:"version"`
}

// CARError is a fault in an archive. It wraps protocol.ErrCorrupt, and what was wrong.
type CARError struct {
	Offset int64 // of the section, in bytes from the beginning of the file
	Err    error
}

func (e *CARError) Error() string { return fmt.Sprintf("CAR, byte %d: %v", e.Offset, e.Err) }

// Unwrap gives protocol.ErrCorrupt and the cause.
func (e *CARError) Unwrap() []error { return []error{protocol.ErrCorrupt, e.Err} }

// carReader yields the blocks of an archive one by one.
type carReader struct {
	in     *bufio.Reader
	offset int64 // of the next byte
	end    int64 // of the version 1 part; −1 is the end of the file
	roots  []protocol.Link
}

// newCARReader reads the header. The error is a *CARError, or what r returned.
func newCARReader(r io.Reader) (*carReader, error) {
	c := &carReader{in: bufio.NewReaderSize(r, 64<<10), end: -1}
	if pragma, err := c.in.Peek(len(carV2Pragma)); err == nil && string(pragma) == carV2Pragma {
		if err := c.unwrap(); err != nil {
			return nil, err
		}
	}
	at := c.offset
	raw, err := c.section()
	if errors.Is(err, io.EOF) {
		return nil, &CARError{at, errors.New("an empty file, no CAR header")}
	}
	if err != nil {
		return nil, err
	}
	if err := dagcbor.Check(raw); err != nil {
		return nil, &CARError{at, fmt.Errorf("no CAR header: %w", invalid(err))}
	}
	var h carHeader
	if err := Decode(raw, &h); err != nil {
		return nil, &CARError{at, fmt.Errorf("no CAR header: %w", err)}
	}
	if h.Version != 1 {
		return nil, &CARError{at, fmt.Errorf("version %d, want 1 or 2", h.Version)}
	}
	same := func(h carHeader) bool {
		b, err := Marshal(h)
		return err == nil && bytes.Equal(b, raw)
	}
	if !same(h) && (len(h.Roots) > 0 || !same(carHeader{[]protocol.Link{}, 1})) { // without roots some write null, others an empty list
		return nil, &CARError{at, errors.New("no CAR header: it is a map of roots, a list of links, and version alone")}
	}
	c.roots = h.Roots
	return c, nil
}

// CountCAR counts what an archive of Export holds, to its end. What it reads is not checked by hash.
func CountCAR(r io.Reader) (Stats, error) {
	c, err := newCARReader(r)
	if err != nil {
		return Stats{}, err
	}
	st := Stats{Runs: len(c.roots) - 1}
	if len(c.roots) > 0 {
		st.Root = c.roots[0]
	}
	for {
		_, err := c.section()
		if errors.Is(err, io.EOF) {
			st.Bytes = c.offset
			return st, nil
		}
		if err != nil {
			return Stats{}, err
		}
		st.Blocks++
	}
}

// unwrap skips to the version 1 part of a version 2 file.
func (c *carReader) unwrap() error {
	var head [len(carV2Pragma) + 40]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return &CARError{0, fmt.Errorf("CARv2 header: %w", err)}
	}
	c.offset = int64(len(head))
	fields := head[len(carV2Pragma)+16:]
	from, size := binary.LittleEndian.Uint64(fields), binary.LittleEndian.Uint64(fields[8:])
	if from < uint64(len(head)) || from > 1<<62 || size > 1<<62 {
		return &CARError{0, fmt.Errorf("CARv2 header: its data at %d, %d bytes, cannot be", from, size)}
	}
	skip := int64(from) - c.offset
	if n, err := io.CopyN(io.Discard, c.in, skip); err != nil {
		return &CARError{c.offset + n, fmt.Errorf("CARv2 header: its data begins at %d: %w", from, unexpected(err))}
	}
	c.offset, c.end = int64(from), int64(from+size)
	return nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// section reads a length and as many bytes; io.EOF only between sections.
func (c *carReader) section() ([]byte, error) {
	at := c.offset
	if at == c.end {
		return nil, io.EOF
	}
	n, err := c.uvarint()
	if err == io.EOF {
		if c.end >= 0 {
			return nil, &CARError{at, fmt.Errorf("its data should go on to byte %d: %w", c.end, io.ErrUnexpectedEOF)}
		}
		return nil, io.EOF
	}
	if err != nil {
		return nil, &CARError{at, fmt.Errorf("section length: %w", err)}
	}
	switch {
	case n == 0:
		return nil, &CARError{at, errors.New("a section of no bytes")}
	case n > carSectionMax:
		return nil, &CARError{at, fmt.Errorf("a section of %d bytes; at most %d are read", n, carSectionMax)}
	case c.end >= 0 && c.offset+int64(n) > c.end:
		return nil, &CARError{at, fmt.Errorf("a section of %d bytes ends beyond the data", n)}
	}
	out := make([]byte, min(n, 1<<20)) // a length that lies costs little memory
	m, err := io.ReadFull(c.in, out)
	if err == nil && uint64(m) < n {
		out = append(make([]byte, 0, n), out...)[:n]
		var more int
		more, err = io.ReadFull(c.in, out[m:])
		m += more
	}
	if c.offset += int64(m); err != nil {
		return nil, &CARError{at, fmt.Errorf("a section of %d bytes has only %d: %w", n, m, unexpected(err))}
	}
	return out, nil
}

// uvarint reads a length; io.EOF when there is not a single byte.
func (c *carReader) uvarint() (uint64, error) {
	var v uint64
	for i := range 9 {
		b, err := c.in.ReadByte()
		if err != nil {
			if i == 0 {
				return 0, err
			}
			return 0, unexpected(err)
		}
		c.offset++
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			if i > 0 && b == 0 {
				return 0, errors.New("a varint not in its shortest form")
			}
			return v, nil
		}
	}
	return 0, errors.New("a varint of more than 9 bytes")
}

// next yields the next block, its bytes checked against its CID, and the offset of its
// section. io.EOF ends the archive. A block that does not match comes with its CID and a
// *CARError around the *Mismatch; reading may go on after that one.
func (c *carReader) next() (b Block, at int64, err error) {
	at = c.offset
	raw, err := c.section()
	if err != nil {
		return Block{}, at, err
	}
	n, id, err := cid.CidFromBytes(raw)
	if err != nil {
		return Block{}, at, &CARError{at, fmt.Errorf("its CID: %w", err)}
	}
	b = Block{protocol.NewLink(id), raw[n:]}
	if err := Check(b.Link, b.Data); err != nil {
		return b, at, &CARError{at, err}
	}
	return b, at, nil
}

// beginCAR is the beginning of an archive; its blocks follow as sections.
func beginCAR(roots []protocol.Link) ([]byte, error) {
	h, err := Encode(carHeader{Roots: roots, Version: 1})
	return appendSection(nil, nil, h.Data), err
}

// appendSection appends a block to an archive.
func appendSection(dst, id, data []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(id)+len(data)))
	return append(append(dst, id...), data...)
}
