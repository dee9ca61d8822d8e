package tree

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ipfs/go-cid"
	"github.com/multiformats/go-multihash"

	"wf/protocol"
	"wf/protocol/dagcbor"
)

// Version is the "v" of the blocks that this binary writes, and the only one that it reads.
const Version = 1

// SplitAbove is the number of entries above which a directory is split into parts. partMax is that of a
// part, which is reached where no name ends one.
const (
	SplitAbove = 4096
	partMax    = 8192
)

// NameMax is the length in bytes of the longest name.
const NameMax = 1024

// Mode is what an entry of a directory is.
type Mode string

// The modes. What is omitted has no link: its content was not read, or not kept.
const (
	File    Mode = "file"
	Exec    Mode = "exec" // a file that may be executed
	Link    Mode = "link"
	Dir     Mode = "dir"
	Omitted Mode = "omitted"
)

// Why an entry is omitted.
const (
	WhyName     = "name"     // its name is not UTF-8: each byte that is none is written \xHH
	WhySpecial  = "special"  // a socket, a pipe or a device
	WhySize     = "size"     // it is larger than a file may be
	WhySecret   = "secret"   // it holds a secret, or what has the shape of one
	WhyUnstable = "unstable" // it changed each time it was read
	WhyDenied   = "denied"   // it may not be read
)

// An Entry is what a directory has under a name.
type Entry struct {
	Name string
	Mode Mode
	Link protocol.Link // none for Omitted
	Size int64         // bytes: of the file, of the text of the link, of all files below the directory
	Why  string        // for Omitted
}

// A Node is a block of a directory: the entries, sorted by their bytes, or the parts that have them.
type Node struct {
	Entries []Entry
	Parts   []protocol.Link
}

// Block is bytes with their name.
type Block struct {
	Link protocol.Link
	Data []byte
}

// IsRaw reports whether the bytes are content as it is, and no record of ours.
func (b Block) IsRaw() bool { return isRaw(b.Link) }

// Raw is the block of bytes as they are.
func Raw(data []byte) Block { return Block{protocol.RawLink(data), data} }

// record is the block of DAG-CBOR.
func record(data []byte) Block {
	c, err := cid.NewPrefixV1(cid.DagCBOR, multihash.SHA2_256).Sum(data)
	if err != nil {
		panic(err) // sha2-256 is always registered
	}
	return Block{protocol.NewLink(c), data}
}

func isRecord(l protocol.Link) bool { return of(l, cid.DagCBOR) }
func isRaw(l protocol.Link) bool    { return of(l, cid.Raw) }

// of reports whether a link names a block of a codec by its SHA-256.
func of(l protocol.Link, codec uint64) bool {
	return l.Defined() && dagcbor.Plain(l.CID().KeyString()) && l.CID().Type() == codec
}

// Encode makes the blocks of a directory from its entries, which are sorted; the last one is its root.
// Entries that Decode would refuse are an error wrapping protocol.ErrInvalidBlock.
func Encode(entries []Entry) ([]Block, error) {
	if err := check(entries); err != nil {
		return nil, err
	}
	if len(entries) <= SplitAbove {
		return []Block{record(encode(Node{Entries: entries}))}, nil
	}
	var blocks []Block
	var top Node
	for from, to := 0, 0; to < len(entries); {
		if to++; to < len(entries) && to-from < partMax && !ends(entries[to-1].Name) {
			continue
		}
		b := record(encode(Node{Entries: entries[from:to]}))
		blocks, top.Parts, from = append(blocks, b), append(top.Parts, b.Link), to
	}
	return append(blocks, record(encode(top))), nil
}

// ends reports whether a name ends a part: its SHA-256 ends in 11 zero bits.
func ends(name string) bool {
	sum := sha256.Sum256([]byte(name))
	return sum[31] == 0 && sum[30]&7 == 0
}

// encode writes a node. The keys of DAG-CBOR are sorted by their length first.
func encode(n Node) []byte {
	b := make([]byte, 0, 32+112*len(n.Entries)+41*len(n.Parts))
	keys := uint64(3)
	if len(n.Parts) > 0 {
		keys++
	}
	b = dagcbor.AppendHead(b, dagcbor.Map, keys)
	b = dagcbor.AppendInt(dagcbor.AppendText(b, "v"), Version)
	b = dagcbor.AppendText(dagcbor.AppendText(b, "kind"), protocol.KindTree)
	if len(n.Parts) > 0 {
		b = appendLinks(dagcbor.AppendText(b, "parts"), n.Parts)
	}
	b = dagcbor.AppendHead(dagcbor.AppendText(b, "entries"), dagcbor.List, uint64(len(n.Entries)))
	for i := range n.Entries {
		e := &n.Entries[i]
		keys := uint64(4)
		if e.Why != "" {
			keys++
		}
		b = dagcbor.AppendHead(b, dagcbor.Map, keys)
		if e.Why != "" {
			b = dagcbor.AppendText(dagcbor.AppendText(b, "why"), e.Why)
		}
		b = dagcbor.AppendText(b, "link")
		if e.Link.Defined() {
			b = dagcbor.AppendLink(b, e.Link.CID().KeyString())
		} else {
			b = dagcbor.AppendNull(b)
		}
		b = dagcbor.AppendText(dagcbor.AppendText(b, "mode"), string(e.Mode))
		b = dagcbor.AppendText(dagcbor.AppendText(b, "name"), e.Name)
		b = dagcbor.AppendInt(dagcbor.AppendText(b, "size"), e.Size)
	}
	return b
}

func appendLinks(b []byte, links []protocol.Link) []byte {
	b = dagcbor.AppendHead(b, dagcbor.List, uint64(len(links)))
	for _, l := range links {
		b = dagcbor.AppendLink(b, l.CID().KeyString())
	}
	return b
}

// Decode reads a block of a directory. What Encode would not have written is an error wrapping
// protocol.ErrInvalidBlock.
func Decode(data []byte) (Node, error) {
	var n Node
	w := dagcbor.Walk{B: data, Strict: true}
	keys := count(&w, dagcbor.Map)
	if err := begin(&w, protocol.KindTree); err != nil {
		return Node{}, err
	}
	if keys == 4 {
		key(&w, "parts")
		n.Parts = links(&w)
	}
	key(&w, "entries")
	const least = 24 // bytes of an entry
	for left := count(&w, dagcbor.List); left > 0 && !w.Failed(); left-- {
		if n.Entries == nil {
			n.Entries = make([]Entry, 0, min(left, uint64(w.Left()/least)))
		}
		n.Entries = append(n.Entries, entry(&w))
	}
	if !w.Ended() || keys != 3 && len(n.Parts) == 0 {
		return Node{}, invalid("tree", cause(&w))
	}
	if len(n.Parts) > 0 && len(n.Entries) > 0 {
		return Node{}, invalid("tree", "it has both entries and parts")
	}
	for _, p := range n.Parts {
		if !isRecord(p) {
			return Node{}, invalid("tree", "a part is no tree")
		}
	}
	if err := check(n.Entries); err != nil {
		return Node{}, err
	}
	if len(n.Entries) > partMax {
		return Node{}, invalid("tree", "it has too many entries for one block")
	}
	if !bytes.Equal(encode(n), data) {
		return Node{}, invalid("tree", "it is not in its one form")
	}
	return n, nil
}

func entry(w *dagcbor.Walk) (e Entry) {
	if keys := count(w, dagcbor.Map); keys == 5 {
		key(w, "why")
		e.Why = string(w.Text())
	}
	key(w, "link")
	if w.Is(dagcbor.Tag) {
		e.Link = protocol.ReadLink(w)
	} else if !w.Null() {
		w.Fail()
	}
	key(w, "mode")
	e.Mode = Mode(w.Text())
	key(w, "name")
	e.Name = string(w.Text())
	key(w, "size")
	e.Size = w.Number()
	return e
}

// begin reads what every block begins with.
func begin(w *dagcbor.Walk, kind string) error {
	key(w, "v")
	v := w.Number()
	key(w, "kind")
	if got := string(w.Text()); got != kind || w.Failed() {
		return invalid(kind, "it is none")
	}
	if v != Version {
		return invalid(kind, fmt.Sprintf("it has version %d, and this wf reads version %d", v, Version))
	}
	return nil
}

func key(w *dagcbor.Walk, name string) {
	if string(w.Text()) != name {
		w.Fail()
	}
}

// count reads the head of a list or map.
func count(w *dagcbor.Walk, major byte) uint64 {
	if !w.Is(major) {
		w.Fail()
		return 0
	}
	_, _, n := w.Head()
	return n
}

func links(w *dagcbor.Walk) (out []protocol.Link) {
	const each = 41 // bytes
	for left := count(w, dagcbor.List); left > 0 && !w.Failed(); left-- {
		if out == nil {
			out = make([]protocol.Link, 0, min(left, uint64(w.Left()/each)+1))
		}
		out = append(out, protocol.ReadLink(w))
	}
	return out
}

// check is what holds of the entries of a block.
func check(entries []Entry) error {
	for i := range entries {
		e := &entries[i]
		if why := CheckName(e.Name); why != "" {
			return invalid("tree", fmt.Sprintf("the name %q %s", e.Name, why))
		}
		if i > 0 && entries[i-1].Name >= e.Name {
			return invalid("tree", fmt.Sprintf("the name %q is not behind %q", e.Name, entries[i-1].Name))
		}
		ok := e.Size >= 0 && e.Size <= protocol.MaxSafeInt
		switch e.Mode {
		case File, Exec:
			ok = ok && e.Why == "" && (isRaw(e.Link) && e.Size <= WholeMax || isRecord(e.Link) && e.Size > WholeMax)
		case Link:
			ok = ok && e.Why == "" && isRaw(e.Link) && e.Size <= WholeMax
		case Dir:
			ok = ok && e.Why == "" && isRecord(e.Link)
		case Omitted:
			ok = ok && e.Why != "" && !e.Link.Defined()
		default:
			ok = false
		}
		if !ok {
			return invalid("tree", fmt.Sprintf("%q cannot be of mode %q with %d bytes and the link %q", e.Name, e.Mode, e.Size, e.Link))
		}
	}
	return nil
}

// CheckName says what keeps a name out of a tree, "" for nothing.
func CheckName(name string) string {
	switch {
	case name == "" || name == "." || name == "..":
		return "is none of a file"
	case len(name) > NameMax:
		return "is too long"
	case strings.ContainsAny(name, "/\x00"):
		return "holds a slash or a NUL"
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case Reserved(name) != "":
		return "stands for " + Reserved(name)
	}
	return ""
}

// Reserved reports which directory a name stands for, ".git" or ".wf", on any of the file
// systems that a workspace may lie on or be copied to; "" for every other name. Those of Apple
// ignore case and some invisible characters; those of Windows ignore case, dots and spaces at
// the end and what follows a colon, and know .git as git~1 too. git refuses the same names.
func Reserved(name string) string {
	name, _, _ = strings.Cut(name, ":")
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, name)
	name = strings.TrimRight(name, ". ")
	for _, of := range []struct{ name, short string }{{".git", "git~1"}, {".wf", "wf~1"}} {
		if strings.EqualFold(name, of.name) || strings.EqualFold(name, of.short) {
			return of.name
		}
	}
	return ""
}

func invalid(kind, why string) error {
	return fmt.Errorf("%s block: %s: %w", kind, why, protocol.ErrInvalidBlock)
}

func cause(w *dagcbor.Walk) string {
	if err := w.Err(); err != nil {
		return err.Error()
	}
	return "it has more or less than it should"
}
