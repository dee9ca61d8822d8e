package modeltest

import "wf/agentkit/model"

// Answer is what the server does with one request. The zero Answer is one that says nothing.
type Answer struct {
	Status int               // not 0 or 200: a refusal with Body
	Header map[string]string // of the response
	Body   string            // of a refusal; or, instead of Say and Events, the raw stream

	Say    []Piece  // in any order: deltas of calls may come interleaved
	Events []string // payloads of data: lines after those of Say, in the words of the wire

	Usage   bool         // tell what the prefix cache gave
	Failure *model.Error // after the events an error event, with its Status and Message
	Cut     bool         // close the connection after the events
	End     bool         // end the response after the events, without its terminator
	Stall   bool         // after the events say nothing more until the client leaves
	Before  func()       // called before the answer begins, nil for nothing

	Raw []byte // not nil: instead of a response of HTTP these bytes, and the end of the connection
}

// Piece is one delta; exactly one field is set.
type Piece struct {
	Text      string
	Thinking  string
	Signature string // of the thinking before it; only Anthropic's wire has it
	Redacted  string // a block of redacted thinking; only Anthropic's wire has it
	Call      *CallPiece
	Finish    string // stop, tool_calls, length or refusal

	Block map[string]any // a whole block in the words of Anthropic's wire, which alone has it
}

// CallPiece is a piece of the tool call of that index. The first one has ID and Name.
type CallPiece struct {
	Index          int
	ID, Name, Args string
}

// Text answers with a text, in pieces of a few bytes, of a long one in some thousand pieces, and
// with usage.
func Text(text string) Answer {
	a := Answer{Usage: true}
	most := max(7, len(text)/4096)
	for len(text) > 0 {
		n := min(len(text), most)
		for n < len(text) && text[n]&0xc0 == 0x80 {
			n++
		}
		a.Say = append(a.Say, Piece{Text: text[:n]})
		text = text[n:]
	}
	a.Say = append(a.Say, Piece{Finish: "stop"})
	return a
}

// Call is a tool call of an answer; Args is raw.
type Call struct{ ID, Name, Args string }

// Calls answers with tool calls; their arguments come interleaved, byte by byte.
func Calls(calls ...Call) Answer {
	a := Answer{Usage: true}
	for i, c := range calls {
		a.Say = append(a.Say, Piece{Call: &CallPiece{Index: i, ID: c.ID, Name: c.Name}})
	}
	for at, more := 0, true; more; at++ {
		more = false
		for i, c := range calls {
			if at < len(c.Args) {
				a.Say = append(a.Say, Piece{Call: &CallPiece{Index: i, Args: c.Args[at : at+1]}})
				more = true
			}
		}
	}
	a.Say = append(a.Say, Piece{Finish: "tool_calls"})
	return a
}

// After puts pieces before those of an answer.
func (a Answer) After(pieces ...Piece) Answer {
	a.Say = append(append([]Piece(nil), pieces...), a.Say...)
	return a
}
