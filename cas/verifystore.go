package cas

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ipfs/go-cid"

	"wf/protocol"
)

// storeEvidence reads a store directory by itself: store.db page by page, and the blob files.
// It holds the store for reading, and lets others in between batches.
type storeEvidence struct {
	dir    string
	report func(Finding)

	gate    *gate
	holding *holding // nil between batches of an export
	since   time.Time

	file      *os.File
	pages     *pageFile
	packs     tree
	index     tree
	late      []byte // what index lacks
	heads     []Head
	reflog    map[string][]ReflogLine
	unindexed map[blockName]bool                        // blocks that are there, but not where the index says
	marks     map[string]map[protocol.Seq]protocol.Link // index/events
	torn      []int
	broken    bool // the page tree is damaged somewhere
	swept     bool
	g         *graph
	held      map[[packKeySize]byte][]unpacked // packs opened lately: neighbours are asked for next
	loose     map[[32]byte]loose               // blocks the index does not tell of
}

func openEvidence(ctx context.Context, dir string, o Options) (*storeEvidence, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", protocol.ErrStore, err)
	}
	g, err := bareGate(abs, o)
	if err != nil {
		return nil, err
	}
	d := &storeEvidence{dir: abs, gate: g, report: func(Finding) {}, reflog: map[string][]ReflogLine{}, marks: map[string]map[protocol.Seq]protocol.Link{}, unindexed: map[blockName]bool{}, loose: map[[32]byte]loose{}}
	if err := d.hold(ctx); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// load opens the file as it is now.
func (d *storeEvidence) load() error {
	_ = d.file.Close() // it was only read; nil at first
	d.held = nil       // the newest pack may have grown
	f, err := openData(filepath.Join(d.dir, fileDB))
	if err != nil {
		return err
	}
	d.file = f
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	pages, err := openPages(f, fi.Size())
	if err != nil {
		d.broken = true
		d.report(Finding{Kind: "page", Where: fileDB + " pages 0 and 1", Expected: "a sound meta page", Actual: "none", Fix: restoreFix})
	}
	d.torn = pages.torn
	pages.fault = func(what string) {
		d.broken = true
		d.report(Finding{Kind: "page", Where: fileDB + " " + what, Expected: "an undamaged page", Actual: "a damaged one", Fix: restoreFix})
	}
	d.pages = pages
	if err != nil {
		return nil
	}
	d.packs, _ = pages.sub(bucketBlocks)
	d.index, _ = pages.sub(bucketIndex, indexBlocks)
	meta, _ := pages.sub(bucketMeta)
	late, ok := meta.find(keyLate)
	if !ok || late.bucket {
		d.index = tree{} // the next process to open the store makes it anew
	}
	d.late = bytes.Clone(late.value)
	return nil
}

func (d *storeEvidence) close() {
	_ = d.file.Close() // it was only read
	d.release()
	d.gate.shut()
}

// survey reads heads and reflog, and with all set every block. What a damaged tree hides is
// gathered page by page.
func (d *storeEvidence) survey(ctx context.Context, g *graph, all bool) error {
	d.g = g
	if d.pages.root == 0 {
		d.report(Finding{Kind: "page", Where: fileDB + " pages 0 and 1", Expected: "a sound meta page", Actual: "none", Fix: restoreFix})
		return d.sweep(ctx)
	}
	if t, ok := d.pages.sub(bucketRefs); !ok {
		d.report(Finding{Kind: "page", Where: fileDB + " refs", Expected: "the bucket of heads", Actual: "none", Fix: restoreFix})
		d.broken = true
	} else if err := t.whole(d.head); err != nil {
		return err
	}
	if t, ok := d.pages.sub(bucketReflog); ok { // a lost one is a doubt of each run
		if err := t.whole(d.lines); err != nil {
			return err
		}
	}
	if all || d.index.p == nil { // without its index, which is derived, everything is read
		d.pages.checkFree()
		if err := d.everyBlock(ctx); err != nil {
			return err
		}
		if err := d.otherBuckets(ctx); err != nil {
			return err
		}
	}
	if d.broken {
		return d.sweep(ctx)
	}
	return nil
}

// otherBuckets looks at the version and at what is derived from the blocks.
func (d *storeEvidence) otherBuckets(ctx context.Context) error {
	if t, ok := d.pages.sub(bucketMeta); ok {
		if it, ok := t.find(keyVersion); !ok || it.bucket || len(it.value) != 1 || it.value[0] == 0 || it.value[0] > layoutVersion {
			d.report(Finding{Kind: "layout", Where: fileDB + " meta/version", Expected: fmt.Sprintf("a layout that this wf knows, up to %d", layoutVersion), Actual: fmt.Sprintf("[% x]", it.value),
				Fix: "verify with the wf that wrote the store; if none wrote this, " + restoreFix})
		}
	}
	for _, b := range [][]byte{indexBases, indexForks, indexDerived} {
		if err := d.eachInBatches(ctx, [][]byte{bucketIndex, b}, func(pageItem) {}); err != nil {
			return err
		}
	}
	return d.eachInBatches(ctx, [][]byte{bucketIndex, indexEvents}, func(it pageItem) {
		head, seq, ok := bytes.Cut(it.key, []byte{0})
		if !ok || len(seq) != 8 || len(it.value) != 32 {
			d.report(Finding{Kind: "index", Where: fileDB + " index/events", Expected: "the digest of an event", Actual: fmt.Sprintf("% x", it.value), Fix: indexFix})
			return
		}
		if d.marks[string(head)] == nil {
			d.marks[string(head)] = map[protocol.Seq]protocol.Link{}
		}
		d.marks[string(head)][protocol.Seq(binary.BigEndian.Uint64(seq))] = linkOf(cid.DagCBOR, it.value)
	})
}

const indexFix = "wf gc makes the index anew"

// whole visits a bucket, each page once.
func (t tree) whole(visit func(pageItem) error) error {
	t.p.used = map[uint64]struct{}{}
	defer func() { t.p.used = nil }()
	return t.values(nil, visit)
}

func (d *storeEvidence) head(it pageItem) error {
	h, err := parseHead(string(it.key), it.value)
	if err != nil {
		d.report(Finding{Kind: "head_form", Where: where(string(it.key), 0, "head"), Expected: "a head", Actual: fmt.Sprintf("% x", it.value), Fix: restoreFix})
		return nil
	}
	d.heads = append(d.heads, h)
	return nil
}

func (d *storeEvidence) lines(it pageItem) error {
	name, _, ok := bytes.Cut(it.key, []byte{0})
	var x rawLine
	for r := (reader{b: it.value}); ok && len(r.b) > 0; {
		x = r.rawLine(x)
		line, err := x.line()
		if ok = !r.bad && err == nil; ok {
			d.reflog[string(name)] = append(d.reflog[string(name)], line)
		}
	}
	if !ok {
		d.report(Finding{Kind: "reflog_form", Where: where(string(name), 0, "reflog"), Expected: "reflog lines", Actual: "bytes that are none", Fix: restoreFix})
	}
	return nil
}

var errPaused = errors.New("others were let in")

// everyBlock reads and hashes every pack, in batches, and holds the index against them.
func (d *storeEvidence) everyBlock(ctx context.Context) error {
	seed := maphash.MakeSeed()
	var packed, indexed uint64 // sums over the entries the index should have, and has
	var last []byte
	take := func(p *openedPack) {
		d.take(p)
		for i := range p.blocks {
			packed += maphash.Bytes(seed, noteLate(make([]byte, 0, 16), p.blocks[i].digest[:], p.key, i))
		}
	}
	var batch []*openedPack
	size := 0
	err := d.eachInBatches(ctx, [][]byte{bucketBlocks}, func(it pageItem) {
		last = bytes.Clone(it.key)
		batch = append(batch, &openedPack{key: last, stored: it.value, at: it.at})
		if size += len(it.value); size >= openTogether || len(batch) == 256 {
			d.openAll(batch, take)
			batch, size = batch[:0], 0
		}
	})
	if err != nil {
		return err
	}
	d.openAll(batch, take)
	if key := packKey(d.packs.sequence); string(last) > string(key) {
		d.report(Finding{Kind: "page", Where: fileDB + " blocks", Expected: "pack numbers up to " + packNumber(key), Actual: "pack " + packNumber(last), Fix: "wf gc writes the file anew"})
	}
	err = d.eachInBatches(ctx, [][]byte{bucketIndex, indexBlocks}, func(it pageItem) {
		for v := it.value; len(v) >= placeSize; v = v[placeSize:] {
			indexed += maphash.Bytes(seed, append(append(make([]byte, 0, 16), it.key...), v[:placeSize]...))
		}
	})
	for e := range slices.Chunk(d.late, lateSize) {
		indexed += maphash.Bytes(seed, e)
	}
	if err != nil || packed == indexed || d.index.p == nil {
		return err
	}
	return d.eachInBatches(ctx, [][]byte{bucketBlocks}, d.checkIndexed)
}

// checkIndexed finds the blocks of a pack that the index does not lead to.
func (d *storeEvidence) checkIndexed(it pageItem) {
	us, _ := d.open(it.value) // damage was reported before
	for i := range us {
		if us[i].codec == 0 {
			continue
		}
		if slices.Contains(d.places(us[i].digest), place{[packKeySize]byte(it.key), byte(i)}) {
			continue
		}
		if d.broken {
			d.loose[us[i].digest] = loose{it.at, len(it.value), i}
		} else { // readers of the store do not find it either: the walk of its run says where
			n := blockName{us[i].codec, us[i].digest}
			delete(d.g.nodes, n)
			d.unindexed[n] = true
		}
		d.report(Finding{Kind: "index", Where: fileDB + " index/blocks", Expected: linkOf(us[i].codec, us[i].digest[:]).String() + " in pack " + packNumber(it.key),
			Actual: "not there", Fix: indexFix})
	}
}

// eachInBatches visits a bucket in order of keys, going on after each pause where it was.
func (d *storeEvidence) eachInBatches(ctx context.Context, path [][]byte, visit func(pageItem)) error {
	var from []byte
	for {
		t, ok := d.pages.sub(path...)
		if !ok {
			return nil
		}
		d.pages.used = map[uint64]struct{}{}
		err := t.values(from, func(it pageItem) error {
			visit(it)
			from = bytes.Clone(it.key)
			paused, err := d.pause(ctx)
			if err == nil && paused {
				err = errPaused
			}
			return err
		})
		d.pages.used = nil
		if !errors.Is(err, errPaused) {
			return err
		}
	}
}

// open unpacks a stored value, from its blob file where it has one.
func (d *storeEvidence) open(stored []byte) ([]unpacked, error) {
	if len(stored) == 33 && stored[0] == packBlob {
		file := hex.EncodeToString(stored[1:])
		path := filepath.Join(d.dir, dirBlobs, file[:2], file)
		b, err := readData(path)
		if errors.Is(err, fs.ErrNotExist) {
			if _, there := os.Lstat(emptied(path)); there == nil {
				return nil, nil // a collection has removed it; a head that leads to it finds it missing
			}
		}
		if err != nil {
			return nil, fmt.Errorf("blob file %s: %w: %w", file, protocol.ErrCorrupt, err)
		}
		us, err := unpack(b)
		if err == nil && (len(us) != 1 || !bytes.Equal(us[0].digest[:], stored[1:])) {
			err = fmt.Errorf("blob file %s holds another block: %w", file, protocol.ErrCorrupt)
		}
		return us, err
	}
	return unpack(stored)
}

// places are the places, by the index, of blocks with digests that begin like sum.
func (d *storeEvidence) places(sum [32]byte) []place {
	var out []place
	if it, ok := d.index.find(sum[:8]); ok && !it.bucket {
		out = places(it.value)
	}
	return latePlaces(out, d.late, string(sum[:8]))
}

// Moves are those that survey has read.
func (d *storeEvidence) Moves(_ context.Context, h Head) (*Moves, error) {
	return &Moves{Lines: d.reflog[h.Name], Events: d.marks[h.Name], In: "index/events", Fix: indexFix}, nil
}

// Block finds one block by the index, as the store itself does.
func (d *storeEvidence) Block(ctx context.Context, l protocol.Link) ([]byte, error) {
	n, ok := nameOf(l)
	if !ok {
		return nil, fmt.Errorf("%s: %w", l, errForeign)
	}
	if _, err := d.pause(ctx); err != nil {
		return nil, err
	}
	damage := error(nil)
	for _, p := range d.places(n.sum) {
		us, err := d.pack(p.pack)
		there := int(p.index) < len(us) && us[p.index].codec != 0
		switch {
		case there && us[p.index].digest == n.sum:
			return us[p.index].data, nil
		case there:
			damage = &Mismatch{l, linkOf(n.codec, us[p.index].digest[:])}
		case err != nil:
			damage = fmt.Errorf("pack %s: %w", packNumber(p.pack[:]), err)
		default:
			damage = fmt.Errorf("pack %s holds %d blocks: %w", packNumber(p.pack[:]), len(us), protocol.ErrCorrupt)
		}
	}
	if l, ok := d.loose[n.sum]; ok {
		stored := make([]byte, l.length)
		if _, err := d.file.ReadAt(stored, l.at); err == nil {
			if us, err := d.open(stored); err == nil && l.index < len(us) && us[l.index].digest == n.sum {
				return us[l.index].data, nil
			}
		}
	}
	if damage == nil {
		damage = protocol.ErrNotFound
	}
	return nil, damage
}

// pack opens a pack by its number.
func (d *storeEvidence) pack(key [packKeySize]byte) ([]unpacked, error) {
	if us, ok := d.held[key]; ok {
		return us, nil
	}
	at, ok := d.packs.find(key[:])
	if !ok || at.bucket {
		return nil, fmt.Errorf("it is gone: %w", protocol.ErrCorrupt)
	}
	us, err := d.open(at.value)
	if err != nil {
		return us, err
	}
	if d.held == nil || len(d.held) >= heldPacks {
		d.held = map[[packKeySize]byte][]unpacked{}
	}
	d.held[key] = us
	return us, nil
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// packNumber words the key of a pack.
func packNumber(key []byte) string {
	if len(key) != packKeySize {
		return fmt.Sprintf("% x", key)
	}
	return fmt.Sprint(binary.BigEndian.Uint64(append(make([]byte, 8-packKeySize), key...)))
}
