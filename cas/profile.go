package cas

import (
	"fmt"
	"slices"
	"sync"

	"wf/protocol"
	"wf/protocol/dagcbor"
)

// ProfileError is a record of ours that holds what records may not. It wraps
// protocol.ErrInvalidBlock.
type ProfileError struct {
	Kind   string
	Offset int    // of the fault, in bytes; 0 for a missing key
	Rule   string // what it breaks
}

func (e *ProfileError) Error() string {
	return fmt.Sprintf("byte %d: %s record: %s", e.Offset, e.Kind, e.Rule)
}

// Unwrap gives protocol.ErrInvalidBlock.
func (e *ProfileError) Unwrap() error { return protocol.ErrInvalidBlock }

// form is what a value may be, by the first byte of its encoding.
type form uint8

const (
	isText form = 1 << iota
	isInt
	isBool
	isLink
	isNull
	isList
	isDict
	needed // of a key: what is not may be missing in old data, and then reads as zero
)

func formOf(major, info byte) form {
	switch major {
	case dagcbor.Uint, dagcbor.Negative:
		return isInt
	case dagcbor.Text:
		return isText
	case dagcbor.List:
		return isList
	case dagcbor.Map:
		return isDict
	case dagcbor.Tag:
		return isLink
	case dagcbor.Simple:
		switch info {
		case dagcbor.False, dagcbor.True:
			return isBool
		case dagcbor.Null:
			return isNull
		}
	}
	return 0
}

var formText = map[form]string{
	isText: "text", isInt: "an integer", isBool: "true or false", isLink: "a link", isNull: "null",
	isList: "a list", isDict: "a map", isText | isNull: "text or null", isLink | isNull: "a link or null",
	isList | isNull: "a list or null", isDict | isNull: "a map or null",
}

// records lists, by kind, the keys of version 1 and the form of their values. The kind itself
// and v are checked for all.
var records = map[string]map[string]form{
	protocol.KindWorkflow: {
		"name": needed | isText, "roles": needed | isList, "edges": needed | isList,
	},
	protocol.KindStart: {
		"workflow": needed | isLink, "inputs": needed | isLink | isNull, "format": needed | isInt,
		"semantics": needed | isInt, "continues": isList | isNull,
	},
	protocol.KindStep: {
		"start": needed | isLink, "parents": needed | isList | isNull, "role": needed | isText, "visit": needed | isInt,
		"item": isDict | isNull, "edge": isInt, "via": isText, "edgePrompt": isText,
		"resumes": isLink | isNull, "tools": isLink | isNull, "inject": isLink | isNull,
		"output": isLink | isNull, "data": isLink | isNull, "status": needed | isText, "error": isLink | isNull,
		"artifacts": isLink | isNull, "own": isDict | isNull,
	},
	protocol.KindCompaction: {
		"start": needed | isLink, "role": needed | isText, "prior": needed | isLink, "covers": needed | isLink,
		"summary": needed | isLink, "tools": isLink | isNull, "inject": isLink | isNull,
	},
	protocol.KindResult: {
		"start": needed | isLink, "parents": needed | isList | isNull, "status": needed | isText, "outputs": isLink | isNull,
	},
	protocol.KindEvent: {
		"prev": needed | isLink | isNull, "seq": needed | isInt, "ts": needed | isInt, "type": needed | isText,
		"step": isText | isNull, "data": needed | isDict | isNull,
	},
	protocol.KindArchive: {
		"runs": needed | isList,
	},
	protocol.KindGroup: {
		"name": needed | isText, "last": needed | isInt, "slots": needed | isList | isNull, "queue": needed | isList | isNull,
	},
	protocol.KindFilesKept: {
		"prev": needed | isLink | isNull, "tree": needed | isLink, "also": isLink | isNull,
	},
	protocol.KindFilesRestore: {
		"prev": needed | isLink | isNull, "run": needed | isText, "workspace": needed | isText, "state": needed | isText, "from": needed | isText, "to": needed | isText,
		"undo": needed | isText, "paths": isList, "force": isBool, "by": isText, "at": needed | isInt, "tree": isText, "changed": isInt, "conflicts": isList,
		"chat": isDict | isNull,
	},
	protocol.KindTombstone: {
		"run": needed | isText, "head": needed | isText, "seq": needed | isInt, "by": isText, "at": needed | isInt, "why": isText,
		"files": isText,
	},
	protocol.KindChunks: {
		"size": needed | isInt, "parts": needed | isList,
	},
	protocol.KindTree: {
		"entries": needed | isList, "parts": isList,
	},
	protocol.KindFile: {
		"size": needed | isInt, "parts": needed | isList,
	},
}

// scanner scans a block, and then judges and reads what it has seen.
type scanner struct{ dagcbor.Scan }

var scanners = sync.Pool{New: func() any { return &scanner{dagcbor.Scan{Keys: make([]dagcbor.Key, 0, 32)}} }}

// newScanner takes a scanner of data from the pool.
func newScanner(data []byte) *scanner {
	s := scanners.Get().(*scanner)
	s.Scan = dagcbor.Scan{Walk: dagcbor.Walk{B: data}, Keys: s.Keys[:0]}
	return s
}

// free gives a scanner back, which then holds nothing of the block.
func (s *scanner) free() {
	clear(s.Keys)
	s.Scan = dagcbor.Scan{Keys: s.Keys}
	scanners.Put(s)
}

// profile scans data and, where it is a record of one of our kinds, checks what the general
// codec allows and records do not: no floats, integers within ±(2^53−1), links that are CIDv1
// with sha2-256 to dag-cbor or raw blocks, the keys of the kind present and of their type.
// Any other block passes. The error is a *ProfileError, or else wraps a *dagcbor.Fault.
func profile(data []byte) error {
	s := newScanner(data)
	defer s.free()
	if err := s.Run(); err != nil {
		return invalid(err)
	}
	return s.profile()
}

// checkData is what profile asks of the data of an event, which lies one level deep in it.
func checkData(data []byte) error {
	s := dagcbor.Scan{Walk: dagcbor.Walk{B: data}, Depth: dagcbor.MaxDepth - 1}
	if err := s.Run(); err != nil {
		return invalid(err)
	}
	if s.Wide.Rule != "" {
		return &ProfileError{protocol.KindEvent, s.Wide.Offset, "its data: " + string(s.Wide.Rule)}
	}
	top := dagcbor.Walk{B: data}
	if major, info, _ := top.Head(); formOf(major, info)&(isDict|isNull) == 0 {
		return &ProfileError{protocol.KindEvent, 0, "data must be " + formText[isDict|isNull]}
	}
	return nil
}

// profile judges what a finished scan has seen.
func (s *scanner) profile() error {
	kind := s.kind()
	fields, ours := records[kind]
	if !ours {
		return nil
	}
	if s.Wide.Rule != "" {
		return &ProfileError{kind, s.Wide.Offset, string(s.Wide.Rule)}
	}
	v, ok := s.top("v")
	version := s.from(v.At).Number()
	if !ok || version < 1 {
		return &ProfileError{kind, v.At, "v must be its version, an integer from 1"}
	}
	if version != protocol.RecordVersion {
		return nil // a later version may have other keys
	}
	found := 0
	for _, k := range s.Keys {
		f, ok := fields[string(k.Name)]
		if !ok {
			continue
		}
		if formOf(k.Major, k.Info)&f == 0 {
			return &ProfileError{kind, k.At, fmt.Sprintf("%s must be %s", k.Name, formText[f&^needed])}
		}
		if f&needed != 0 {
			found++
		}
	}
	if found < required[kind] {
		return &ProfileError{kind, 0, s.missing(fields)}
	}
	return nil
}

// required counts the required keys of each kind.
var required = func() map[string]int {
	n := map[string]int{}
	for kind, fields := range records {
		for _, f := range fields {
			if f&needed != 0 {
				n[kind]++
			}
		}
	}
	return n
}()

// kind is the record kind of the block, "" where it has none.
func (s *scanner) kind() string {
	k, ok := s.top("kind")
	if !ok || k.Major != dagcbor.Text {
		return ""
	}
	return string(s.from(k.At).Text())
}

func (s *scanner) top(name string) (dagcbor.Key, bool) {
	for _, k := range s.Keys {
		if string(k.Name) == name {
			return k, true
		}
	}
	return dagcbor.Key{}, false
}

// from reads the scanned block from an offset.
func (s *scanner) from(at int) *dagcbor.Walk { return &dagcbor.Walk{B: s.B, At: at} }

func (s *scanner) missing(fields map[string]form) string {
	var absent []string
	for name, f := range fields {
		if _, ok := s.top(name); f&needed != 0 && !ok {
			absent = append(absent, name)
		}
	}
	return fmt.Sprintf("the key %s is missing", slices.Min(absent))
}
