package cas

import (
	"encoding/binary"
	"fmt"

	"wf/protocol"
	"wf/protocol/dagcbor"
)

// A store directory:
//
//	store.db      bbolt: everything but large values
//	store.lock    flock SH to read, EX to write; commit counter (8 bytes, LE), then the holder's pid
//	turn          flock EX while queueing for store.lock
//	blobs/xx/…    stored packs over 64 KiB, named by the digest of their block; empty as gone-DIGEST where a collection on a full disk was
//	              cut off (gcsweep.go)
//	backup.json   where the last backup is (backup.go)
//	backup.links  what blocks link to, for the next backup (backuplinks.go)
//	runs/ID.lock  flock EX while a process drives run ID, and its pid; see drivelock.go
//	runs/.notify-…  flock EX while a process delivers to a sink, named by the digest of its name
//
// The buckets of store.db:
//
//	bucket         key                       value
//	meta           "version"                 1 byte: layoutPlain, or layoutDeleted from the first deletion of a run on (tombstone.go)
//	meta           "late"                    entries of index/blocks that are still to be written there (late.go)
//	meta           "gc"                      how far the store had got at earlier collections (gcsweep.go)
//	meta           "kin"                     1 byte: what runs share is noted for all of them (kinanew.go)
//	meta           "held"                    JSON, in a store that was restored until it is adopted (restore.go)
//	blocks         pack number (5, BE)       pack of blocks (pack.go)
//	refs           head name                 CID length and bytes ‖ seq ‖ ts (varints)
//	reflog         name ‖ 00 ‖ chunk (4, BE) lines (reflog.go), at most reflogChunk bytes
//	index/blocks   digest[:8]                pack number (5) ‖ place in the pack (1), again for each block that begins alike
//	index/events   name ‖ 00 ‖ seq (8, BE)   digest of that event, at every checkpoint-th seq
//	index/bases    name                      seq (8, BE) ‖ name of the head that this one shares the events up to seq with
//	index/forks    name ‖ 00 ‖ name          nothing: the second head has the first one in index/bases
//	index/derived  key                       sha256[:16] of CID and data ‖ CID length and bytes ‖ seal (16, derived.go) ‖ data
//	               memo/…, memo-of/…         of those: results that may be reused (memo.go)
//	               kin/…                     where the own parts of runs begin (kin.go)
//	lost/n/index   –                         an index that was damaged (heal.go); left out of a compaction
//
// index holds nothing that the others do not tell: deleted, it is rebuilt; so are "late" and "kin".
var (
	bucketMeta    = []byte("meta")
	bucketBlocks  = []byte("blocks")
	bucketRefs    = []byte("refs")
	bucketReflog  = []byte("reflog")
	bucketIndex   = []byte("index")
	indexBlocks   = []byte("blocks")
	indexEvents   = []byte("events")
	indexBases    = []byte("bases")
	indexForks    = []byte("forks")
	indexDerived  = []byte("derived")
	bucketLost    = []byte("lost")
	keyVersion    = []byte("version")
	keyLate       = []byte("late")
	keyKin        = []byte("kin")
	layoutBuckets = [][]byte{bucketMeta, bucketBlocks, bucketRefs, bucketReflog, bucketIndex}
	layoutIndexes = [][]byte{indexBlocks, indexEvents, indexBases, indexForks, indexDerived}
)

const (
	layoutPlain   = 1
	layoutDeleted = 2 // there are heads deleted/…, which a wf that knows layout 1 alone would take no notice of
	layoutVersion = layoutDeleted

	fileDB   = "store.db"
	fileLock = "store.lock"
	fileTurn = "turn"
	dirBlobs = "blobs"
	dirRuns  = "runs"

	fileBackup = "backup.json"

	inlineMax   = 64 << 10 // stored values above go to blob files
	smallBlock  = 4 << 10  // blocks up to this length share a pack
	packMax     = 32 << 10 // bytes of blocks in a shared pack
	packBlocks  = 255      // blocks in a pack: the place is one byte
	packRoom    = 1990     // stored packs up to this length take more segments: two fill a page of 4 KiB
	reflogChunk = 1 << 10
	checkpoint  = 32 // events between two entries of index/events
)

const packKeySize = 5

// packKey is the key of a pack in blocks.
func packKey(n uint64) []byte {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	return b[8-packKeySize:]
}

// place says where a block lies.
type place struct {
	pack  [packKeySize]byte
	index byte
}

const placeSize = packKeySize + 1

// places reads a value of index/blocks.
func places(v []byte) []place {
	var out []place
	for ; len(v) >= placeSize; v = v[placeSize:] {
		p := place{index: v[packKeySize]}
		copy(p.pack[:], v)
		out = append(out, p)
	}
	return out
}

// eventKey is the key of an event in index/events.
func eventKey(name string, seq protocol.Seq) []byte {
	b := make([]byte, 0, len(name)+9)
	b = append(append(b, name...), 0)
	return binary.BigEndian.AppendUint64(b, uint64(seq))
}

// digestOf is the sha2-256 digest in a link of this store's form: CIDv1, dag-cbor or raw.
func digestOf(l protocol.Link) (string, error) {
	switch {
	case dagcbor.Plain(l.CID().KeyString()):
		return sumOf(l), nil
	case !l.Defined():
		return "", fmt.Errorf("no CID: %w", protocol.ErrNotFound)
	}
	return "", fmt.Errorf("%s is no CIDv1 of dag-cbor or raw with sha2-256, the only ones stored here: %w", l, protocol.ErrNotFound)
}

// sumOf is digestOf of a link that is known to be of that form.
func sumOf(l protocol.Link) string { return l.CID().KeyString()[4:] }

// linkOf is the link with a digest.
func linkOf(codec byte, digest []byte) protocol.Link {
	var b [36]byte
	b[0], b[1], b[2], b[3] = 1, codec, 0x12, 32
	copy(b[4:], digest)
	l, err := protocol.CastLink(b[:])
	if err != nil {
		panic("cas: a CID made here does not parse: " + err.Error())
	}
	return l
}

// appendLink writes a link with its length; a null link is the length 0.
func appendLink(b []byte, l protocol.Link) []byte {
	s := l.Bytes()
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// reader takes values apart; the first fault sticks.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// int reads a number in zigzag form, as binary.Varint does.
func (r *reader) int() int64 {
	v := r.uint()
	return int64(v>>1) ^ -int64(v&1)
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) link() protocol.Link {
	b := r.take(r.uint())
	if len(b) == 0 {
		return protocol.Link{}
	}
	l, err := protocol.CastLink(b)
	if err != nil {
		r.bad = true
	}
	return l
}

// Lengths are at what lengths texts and blocks are kept or read in another way, in bytes. Tests draw around them.
func Lengths() []int {
	return []int{protocol.InlineMax, smallBlock, packMax, protocol.EdgePromptMax, inlineMax, readBytes, protocol.ChunkSize}
}

// Counts are such numbers of events in a journal.
func Counts() []int { return []int{checkpoint, readEvents} }
