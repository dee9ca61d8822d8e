package cas

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"wf/files"
)

// What the blocks of a pack link to follows from its bytes. A backup keeps it in the store, in backup.links, so that the next one has
// to hash a pack and not to unpack it:
//
//	for each pack   sha256 of its stored bytes, of a blob file of those in the file (32) ‖ length of the rest (uvarint)
//	                ‖ number of blocks (uvarint) ‖ for each: digest[:8] ‖ number of links (uvarint) ‖ for each link: 0 and
//	                  digest[:8], or the place in this pack, from 1 on (uvarint)
//	at the end      HMAC-SHA256 of all before, by Options.Seal (32)
//
// A wrong record would have blocks left out of backups, so what is not sealed counts as lost: all packs are unpacked then.
const (
	fileLinks = "backup.links"
	linksHead = "wf links 1\n"
)

// keptLinks is what the file has.
type keptLinks struct {
	packs map[[32]byte][]byte
}

func (s *Store) sealer() hash.Hash { return hmac.New(sha256.New, s.opts.Seal) }

// readLinks reads what an earlier backup kept; nothing if that is damaged or another key sealed it.
func (s *Store) readLinks() (k keptLinks) {
	f, err := openData(filepath.Join(s.Dir(), fileLinks))
	if err != nil {
		return k
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() > listMax || info.Size() < int64(len(linksHead)+sha256.Size) {
		return k
	}
	raw := make([]byte, info.Size())
	if _, err := io.ReadFull(f, raw); err != nil {
		return k
	}
	h := s.sealer()
	body, seal := raw[:len(raw)-sha256.Size], raw[len(raw)-sha256.Size:]
	h.Write(body)
	if !hmac.Equal(h.Sum(nil), seal) || !strings.HasPrefix(string(body[:len(linksHead)]), linksHead) {
		return k
	}
	k.packs = map[[32]byte][]byte{}
	for r := (reader{b: body[len(linksHead):]}); len(r.b) > 0; {
		sum := r.take(sha256.Size)
		record := r.take(r.uint())
		if r.bad {
			return keptLinks{}
		}
		k.packs[[32]byte(sum)] = record
	}
	return k
}

// of gives the blocks of a pack, if they are known.
func (k *keptLinks) of(sum [32]byte) ([]glimpse, bool) {
	record, ok := k.packs[sum]
	if !ok {
		return nil, false
	}
	r := reader{b: record}
	out := make([]glimpse, 0, packBlocks)
	var inside []*uint64 // links within the pack, which are places until all blocks are read
	for n := r.uint(); n > 0 && !r.bad; n-- {
		b := glimpse{name: r.brief()}
		count := r.uint()
		if count > uint64(len(r.b)) {
			return nil, false
		}
		b.links = make([]uint64, count)
		for i := range b.links {
			if place := r.uint(); place > 0 {
				b.links[i] = place - 1
				inside = append(inside, &b.links[i])
			} else {
				b.links[i] = r.brief()
			}
		}
		out = append(out, b)
	}
	for _, to := range inside {
		if *to >= uint64(len(out)) {
			return nil, false
		}
		*to = out[*to].name
	}
	return out, !r.bad && len(r.b) == 0
}

// brief reads the name of a block in a reachGraph.
func (r *reader) brief() uint64 {
	if b := r.take(8); !r.bad {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// record says what the blocks of a pack link to; nil where the graph cannot tell.
func (g *reachGraph) record(blocks []uint32) []byte {
	out := binary.AppendUvarint(nil, uint64(len(blocks)))
	for _, id := range blocks {
		n := &g.nodes[id]
		if n.state&reachOdd != 0 || g.more[id] != nil {
			return nil
		}
		out = binary.AppendUvarint(binary.BigEndian.AppendUint64(out, g.names[id]), uint64(n.count))
		for _, to := range g.links[n.first : n.first+uint64(n.count)] {
			place := slices.Index(blocks, to) + 1
			out = binary.AppendUvarint(out, uint64(place))
			if place == 0 {
				out = binary.BigEndian.AppendUint64(out, g.names[to])
			}
		}
	}
	return out
}

// keepLinks writes what was read for the next backup, unless that is there.
func (b *backup) keepLinks() error {
	fresh := len(b.links.packs) > 2*len(b.packs)
	out := []byte(linksHead)
	for _, p := range slices.Backward(b.packs) {
		record := b.links.packs[p.content]
		if record == nil {
			record = b.graph.record(p.blocks)
			fresh = fresh || record != nil
		}
		if record != nil {
			out = append(out, p.content[:]...)
			out = append(binary.AppendUvarint(out, uint64(len(record))), record...)
		}
	}
	if !fresh || len(out) > listMax-sha256.Size {
		return nil
	}
	path := filepath.Join(b.s.Dir(), fileLinks)
	left, err := filepath.Glob(path + ".*") // of processes that were killed
	for _, name := range left {
		err = errors.Join(err, removeIfThere(name))
	}
	h := b.s.sealer()
	h.Write(out)
	return errors.Join(err, files.Replace(path, h.Sum(out)))
}

// dropLinks removes what was kept.
func (b *backup) dropLinks() error { return removeIfThere(filepath.Join(b.s.Dir(), fileLinks)) }
