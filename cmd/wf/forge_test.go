package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
)

// A forge takes an archive apart and makes others of it, by docs/format.md alone: none of its code is that which reads
// archives, so that what is wrong there is not wrong here as well. A block is named by the bytes of its CID.
type forge struct {
	t      testing.TB
	roots  []string
	blocks map[string][]byte
}

var (
	forgeOut = func() cbor.EncMode {
		m, err := cbor.EncOptions{Sort: cbor.SortLengthFirst, ShortestFloat: cbor.ShortestFloatNone, NilContainers: cbor.NilContainerAsNull}.EncMode()
		if err != nil {
			panic(err)
		}
		return m
	}()
	forgeIn = func() cbor.DecMode {
		m, err := cbor.DecOptions{MaxNestedLevels: 200, MaxArrayElements: 1 << 24, DefaultMapType: nil}.DecMode()
		if err != nil {
			panic(err)
		}
		return m
	}()
)

// record is a block of DAG-CBOR as it is decoded; link is one in it.
type record = map[any]any

func link(name string) cbor.Tag { return cbor.Tag{Number: 42, Content: append([]byte{0}, name...)} }

func linked(v any) (name string, ok bool) {
	tag, is := v.(cbor.Tag)
	if !is || tag.Number != 42 {
		return "", false
	}
	b, is := tag.Content.([]byte)
	return string(b[1:]), is
}

// cidText is a CID as it is written.
func cidText(name string) string {
	return "b" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte(name)))
}

func (f *forge) put(codec byte, data []byte) string {
	sum := sha256.Sum256(data)
	name := string([]byte{1, codec, 0x12, 32}) + string(sum[:])
	f.blocks[name] = data
	return name
}

func (f *forge) raw(data []byte) string { return f.put(0x55, data) }

func (f *forge) cbor(v any) string {
	b, err := forgeOut.Marshal(v)
	if err != nil {
		f.t.Fatal(err)
	}
	return f.put(0x71, b)
}

// forgeOf reads an archive.
func forgeOf(t testing.TB, car []byte) *forge {
	f := &forge{t: t, blocks: map[string][]byte{}}
	for i, at := range sectionsOf(t, car) {
		if i == 0 {
			var head struct {
				Roots []cbor.Tag `cbor:"roots"`
			}
			if err := forgeIn.Unmarshal(at, &head); err != nil {
				t.Fatal(err)
			}
			for _, r := range head.Roots {
				name, _ := linked(r)
				f.roots = append(f.roots, name)
			}
			continue
		}
		f.blocks[string(at[:36])] = at[36:]
	}
	return f
}

// sectionsOf are the sections of an archive, the header first, without their lengths.
func sectionsOf(t testing.TB, car []byte) (out [][]byte) {
	for len(car) > 0 {
		n, size := binary.Uvarint(car)
		if size <= 0 || uint64(len(car)-size) < n {
			t.Fatal("a section of an archive is cut short")
		}
		out, car = append(out, car[size:size+int(n)]), car[size+int(n):]
	}
	return out
}

// joined is an archive of sections.
func joined(sections [][]byte) []byte {
	var out []byte
	for _, s := range sections {
		out = append(binary.AppendUvarint(out, uint64(len(s))), s...)
	}
	return out
}

func (f *forge) decode(name string) any {
	var v any
	if err := forgeIn.Unmarshal(f.blocks[name], &v); err != nil {
		f.t.Fatalf("%s: %v", cidText(name), err)
	}
	return v
}

// links are those of a value, in the order of its bytes.
func links(v any, out []string) []string {
	switch v := v.(type) {
	case cbor.Tag:
		if name, ok := linked(v); ok {
			out = append(out, name)
		}
	case []any:
		for _, x := range v {
			out = links(x, out)
		}
	case record:
		keys := slices.SortedFunc(maps.Keys(v), func(a, b any) int {
			x, y := a.(string), b.(string)
			if len(x) != len(y) {
				return len(x) - len(y)
			}
			return strings.Compare(x, y)
		})
		for _, k := range keys {
			out = links(v[k], out)
		}
	}
	return out
}

// edited is another archive: edit may change each record of a kind, and what links to it is made anew.
func (f *forge) edited(edit func(f *forge, kind string, r record)) *forge {
	out := &forge{t: f.t, blocks: maps.Clone(f.blocks)}
	names, texts := map[string]string{}, map[string]string{}
	var anew func(name string) string
	var value func(v any) any
	value = func(v any) any {
		switch v := v.(type) {
		case cbor.Tag:
			if name, ok := linked(v); ok {
				return link(anew(name))
			}
		case []any:
			for i := range v {
				v[i] = value(v[i])
			}
		case record:
			for k := range v {
				v[k] = value(v[k])
			}
		case string:
			if now, ok := texts[v]; ok {
				return now
			}
		}
		return v
	}
	anew = func(name string) string {
		if now, ok := names[name]; ok {
			return now
		}
		now := name
		if _, here := f.blocks[name]; here && name[1] == 0x71 {
			v := value(f.decode(name))
			if r, ok := v.(record); ok {
				kind, _ := r["kind"].(string)
				edit(out, kind, r)
			}
			now = out.cbor(v)
		}
		names[name], texts[cidText(name)] = now, cidText(now)
		return now
	}
	// Files first: events name their trees by text.
	for _, last := range slices.Backward(f.roots) {
		if r, ok := f.decode(last).(record); ok && r["kind"] == "archive" {
			for _, run := range r["runs"].([]any) {
				if files, ok := linked(run.(record)["files"]); ok {
					anew(files)
				}
			}
		}
	}
	for _, r := range f.roots {
		out.roots = append(out.roots, anew(r))
	}
	return out
}

// car is the archive: what the roots lead to, depth first, files behind the journals, and the record of the runs last.
func (f *forge) car() []byte {
	var roots []any
	for _, r := range f.roots {
		roots = append(roots, link(r))
	}
	head, err := forgeOut.Marshal(record{"roots": roots, "version": 1})
	if err != nil {
		f.t.Fatal(err)
	}
	sections := [][]byte{head}
	for _, name := range f.order() {
		sections = append(sections, append([]byte(name), f.blocks[name]...))
	}
	return joined(sections)
}

func (f *forge) order() (out []string) {
	last := f.roots[len(f.roots)-1]
	todo := slices.Clone(f.roots[:len(f.roots)-1])
	if r, ok := f.decode(last).(record); ok {
		for _, run := range r["runs"].([]any) {
			if files, ok := linked(run.(record)["files"]); ok {
				todo = append(todo, files)
			}
		}
	}
	slices.Reverse(todo)
	done := map[string]bool{last: true}
	for len(todo) > 0 {
		name := todo[len(todo)-1]
		if todo = todo[:len(todo)-1]; done[name] || f.blocks[name] == nil {
			continue
		}
		done[name] = true
		out = append(out, name)
		var v any
		if name[1] == 0x71 && forgeIn.Unmarshal(f.blocks[name], &v) == nil {
			below := links(v, nil)
			slices.Reverse(below)
			todo = append(todo, below...)
		}
	}
	return append(out, last)
}

// chunks is a payload in chunks that says what it likes.
func (f *forge) chunks(size int64, parts ...string) string {
	list := make([]any, len(parts))
	for i, p := range parts {
		list[i] = link(p)
	}
	return f.cbor(record{"kind": "chunks", "v": 1, "size": size, "parts": list})
}

// tree is a directory.
func (f *forge) tree(entries ...any) string {
	return f.cbor(record{"kind": "tree", "v": 1, "entries": entries})
}

func dirEntry(name, of string) any {
	return record{"link": link(of), "mode": "dir", "name": name, "size": 0}
}

// dagTree is a tree whose directories name the next one wide times, deep within each other.
func (f *forge) dagTree(wide, deep int) string {
	text := f.raw([]byte("x"))
	at := f.tree(record{"link": link(text), "mode": "file", "name": "f", "size": 1})
	for range deep {
		var entries []any
		for i := range wide {
			entries = append(entries, dirEntry(fmt.Sprintf("%03d", i), at))
		}
		at = f.tree(entries...)
	}
	return at
}

func (f *forge) megabyte() string { return f.raw(bytes.Repeat([]byte("0123456789abcde\n"), 1<<16)) }

// store adds the blocks to a store that is closed, and has a run go on to the head, past all that wf checks.
func (f *forge) packs() [][]byte {
	var out [][]byte
	for name, data := range f.blocks {
		var body []byte
		if name[1] == 0x71 {
			body = append(binary.AppendUvarint(nil, uint64(len(data))<<1|1), 0)
		} else {
			body = binary.AppendUvarint(nil, uint64(len(data))<<1)
		}
		out = append(out, segmentOf(1, 0, append(body, data...)))
	}
	return out
}

// segmentOf is a segment of a stored pack: how many blocks, how it is held, and its body.
func segmentOf(count, held byte, body []byte) []byte {
	return append(append(binary.AppendUvarint(nil, uint64(len(body)+2)), count, held), body...)
}

// zstdBomb is a frame of zstd without its magic that says, and has, so many bytes: runs of one byte
// (RFC 8878, 3.1.1).
func zstdBomb(size int64) []byte {
	out := []byte{3<<6 | 1<<5} // a content size of 8 bytes, one segment
	out = binary.LittleEndian.AppendUint64(out, uint64(size))
	for size > 0 {
		n := min(size, 128<<10)
		size -= n
		last := uint32(0)
		if size == 0 {
			last = 1
		}
		head := uint32(n)<<3 | 1<<1 | last // RLE
		out = append(out, byte(head), byte(head>>8), byte(head>>16), 'x')
	}
	return out
}
