package dagcbor

import "fmt"

// Rule is what bytes must keep, in the words of an error.
type Rule string

// What a block must keep to be strict DAG-CBOR; Check tests them in this order. Each is named after
// what breaks it.
const (
	CutShort     Rule = "the block ends inside an item"
	Reserved     Rule = "additional information 28 to 30 is reserved"
	Indefinite   Rule = "indefinite lengths are forbidden"
	NotShortest  Rule = "a number or length must have its shortest form"
	StringLength Rule = "a string is longer than the rest of the block"
	NotUTF8      Rule = "text must be valid UTF-8"
	Count        Rule = "a list or map announces more items than bytes follow"
	KeyType      Rule = "a map key must be text"
	KeyTwice     Rule = "a map key appears twice"
	KeyOrder     Rule = "map keys must be sorted, shorter first, then bytewise"
	Depth        Rule = "lists and maps nest too deep"
	OtherTag     Rule = "the only tag is 42, a link"
	TagContent   Rule = "tag 42 must hold a byte string that is not empty"
	Multibase    Rule = "a link must begin with the byte 00"
	NotCID       Rule = "a link must hold a CID"
	AfterCID     Rule = "bytes follow the CID of a link"
	ShortFloat   Rule = "floats must have 64 bits"
	NotFinite    Rule = "NaN and infinities are forbidden"
	NegativeZero Rule = "-0.0 is forbidden"
	OtherSimple  Rule = "the only simple values are false, true and null"
	Trailing     Rule = "bytes follow the value"
)

// What records keep besides; see Scan.Wide.
const (
	WideInteger Rule = "integers of records lie within ±(2^53−1)"
	WideLink    Rule = "links of records are CIDv1, sha2-256, dag-cbor or raw"
	WideFloat   Rule = "records hold no floats"
)

// Unexpected is for a Walk that was asked for another item than the one at hand.
const Unexpected Rule = "another item should be here"

// Fault is the first place at which bytes break a rule.
type Fault struct {
	Offset int // in bytes
	Rule   Rule
}

func (f *Fault) Error() string { return fmt.Sprintf("byte %d: %s", f.Offset, f.Rule) }
