package cas

import (
	"bytes"
	"fmt"
	"sync"

	"wf/protocol"
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

// Profile scans data and, where it is a record of one of our kinds, checks what the general
// codec allows and records do not: no floats, integers within ±(2^53−1), links that are CIDv1
// with sha2-256 to dag-cbor or raw blocks, the keys of the kind present and of their type.
// Any other block passes. The error is a *ScanError or a *ProfileError.
func Profile(data []byte) error { return profile(data) }

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
)

func formOf(head byte) form {
	switch head >> 5 {
	case 0, 1:
		return isInt
	case 3:
		return isText
	case 4:
		return isList
	case 5:
		return isDict
	case 6:
		return isLink
	case 7:
		switch head {
		case 0xf4, 0xf5:
			return isBool
		case 0xf6:
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

// field is a key of a record. What is not required may be missing in old data and then reads
// as zero.
type field struct {
	form     form
	required bool
}

func need(f form) field { return field{f, true} }
func may(f form) field  { return field{f, false} }

// records lists, by kind, the keys of version 1 and the form of their values. The kind itself
// and v are checked for all.
var records = map[string]map[string]field{
	protocol.KindWorkflow: {
		"name": need(isText), "roles": need(isList), "edges": need(isList),
	},
	protocol.KindStart: {
		"workflow": need(isLink), "inputs": need(isLink | isNull), "format": need(isInt),
		"semantics": need(isInt), "continues": may(isList | isNull),
	},
	protocol.KindStep: {
		"start": need(isLink), "parents": need(isList | isNull), "role": need(isText), "visit": need(isInt),
		"item": may(isDict | isNull), "edge": may(isInt), "via": may(isText), "edgePrompt": may(isText),
		"resumes": may(isLink | isNull), "tools": may(isLink | isNull), "inject": may(isLink | isNull),
		"output": may(isLink | isNull), "data": may(isLink | isNull), "status": need(isText), "error": may(isLink | isNull),
	},
	protocol.KindCompaction: {
		"start": need(isLink), "role": need(isText), "prior": need(isLink), "covers": need(isLink),
		"summary": need(isLink), "tools": may(isLink | isNull), "inject": may(isLink | isNull),
	},
	protocol.KindResult: {
		"start": need(isLink), "parents": need(isList | isNull), "status": need(isText), "outputs": may(isLink | isNull),
	},
	protocol.KindEvent: {
		"prev": need(isLink | isNull), "seq": need(isInt), "ts": need(isInt), "type": need(isText),
		"step": may(isText | isNull), "data": need(isDict | isNull),
	},
	protocol.KindArchive: {
		"runs": need(isList),
	},
	protocol.KindChunks: {
		"size": need(isInt), "parts": need(isList),
	},
}

var scanners = sync.Pool{New: func() any { return &scanner{keys: make([]topKey, 0, 32)} }}

// profile is Scan and Profile in one pass.
func profile(data []byte) error {
	s := scanners.Get().(*scanner)
	defer scanners.Put(s)
	*s = scanner{b: data, max: MaxDepth, keys: s.keys[:0]}
	defer func() { clear(s.keys); s.b, s.onLink = nil, nil }()
	if err := s.run(); err != nil {
		return err
	}
	return s.profile()
}

// checkData is what profile asks of the data of an event, which lies one level deep in it.
func checkData(data []byte) error {
	s := scanner{b: data, max: MaxDepth - 1}
	if err := s.run(); err != nil {
		return err
	}
	if s.strict.rule != "" {
		return &ProfileError{protocol.KindEvent, s.strict.offset, "its data: " + s.strict.rule}
	}
	if formOf(data[0])&(isDict|isNull) == 0 {
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
	if s.strict.rule != "" {
		return &ProfileError{kind, s.strict.offset, s.strict.rule}
	}
	v, ok := s.top("v")
	if !ok || v.head>>5 != 0 || v.head == 0 {
		return &ProfileError{kind, v.value, "v must be its version, an integer from 1"}
	}
	if v.head != protocol.RecordVersion {
		return nil // a later version may have other keys
	}
	found := 0
	for _, k := range s.keys {
		f, ok := fields[string(k.key)]
		if !ok {
			continue
		}
		if formOf(k.head)&f.form == 0 {
			return &ProfileError{kind, k.value, fmt.Sprintf("%s must be %s", k.key, formText[f.form])}
		}
		if f.required {
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
			if f.required {
				n[kind]++
			}
		}
	}
	return n
}()

// kind is the record kind of the block, "" where it has none.
func (s *scanner) kind() string {
	k, ok := s.top("kind")
	if !ok || k.head>>5 != 3 || k.head&31 >= 24 {
		return ""
	}
	return string(s.b[k.value+1 : k.value+1+int(k.head&31)])
}

func (s *scanner) top(name string) (topKey, bool) {
	for _, k := range s.keys {
		if string(k.key) == name {
			return k, true
		}
	}
	return topKey{}, false
}

func (s *scanner) missing(fields map[string]field) string {
	var first []byte
	for name, f := range fields {
		if _, ok := s.top(name); f.required && !ok && (first == nil || bytes.Compare([]byte(name), first) < 0) {
			first = []byte(name)
		}
	}
	return fmt.Sprintf("the key %s is missing", first)
}
