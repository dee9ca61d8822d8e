package api

// A Part is a piece of a long list. The zero Part is all of it.
type Part struct {
	After string // behind this place: Next of the answer before; "" is the beginning
	Limit int    // at most so many items; 0 is any number
	Bytes int    // no further item once the texts have so many bytes; 0 is any number
}

// MaxPart is how many items of a list one answer of a server has at most, and PartBytes about how many bytes
// of text.
const (
	MaxPart   = 5000
	PartBytes = 4 << 20
)

// MaxAnswer is how many bytes an answer has at most that is read as a whole.
const MaxAnswer = 256 << 20

// Full reports whether a part ends before an item of some bytes, where it has so many items and bytes. One
// item it always has.
func (p Part) Full(items, bytes, more int) bool {
	return p.Limit > 0 && items >= p.Limit || p.Bytes > 0 && items > 0 && bytes+more > p.Bytes
}
