package rules

import (
	"wf/engine/lang"
	"wf/protocol"
)

// Records reads what a journal names, and names what a journal will: the rules do no I/O but this.
// All of it is immutable, so the same call always gives the same. Errors are those of the store, which
// wrap protocol.ErrNotFound, ErrCorrupt or ErrInvalidBlock.
type Records interface {
	// Open reads a Start with its definition and its inputs. A Start made by newer rules is an error
	// wrapping protocol.ErrSemantics.
	Open(start protocol.Link) (*Opened, error)
	// Step reads a StepRecord. The caller must not alter it.
	Step(record protocol.Link) (*protocol.StepRecord, error)
	// Payload reads the bytes that a record or an event links.
	Payload(protocol.Link) ([]byte, error)
	// Files reads the tree of artifacts at root: the first most of its files and links, by the names on their paths, and how
	// many it has. What was left out of it is none of them.
	Files(root protocol.Link, most int) (first []File, count int, err error)
	// Data decodes the data of an event, nil for a type that this binary does not know. Long texts
	// are still links.
	Data(protocol.Event) (protocol.Data, error)
	// Name is the link by which bytes are stored as a payload.
	Name(payload []byte) protocol.Link
}

// File is a file or link that a step keeps.
type File struct {
	Path, Mode string
	Size       int64
	Link       protocol.Link // of what it holds
}

// Opened is a Start with its definition and inputs. Nothing in it is altered once it was opened.
type Opened struct {
	Start   protocol.Start
	Program *lang.Program  // the definition, compiled
	Inputs  map[string]any // as expressions see them
	Raw     protocol.JSON  // Inputs as they are stored: a canonical object
}

// text is a text of an event, fetched where it was moved to a block.
func (s *State) text(t protocol.Text) (string, error) { return t.Read(s.from.Payload) }
