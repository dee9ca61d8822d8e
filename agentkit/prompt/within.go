package prompt

import (
	"bytes"

	"wf/protocol"
)

// Within is BuildMessages for a reader that gets at most limit bytes, as JSON, of what happened before the visit. The newest
// earlier visits are there, each whole, in at most half of the limit; the message to the visit itself says how many steps since the
// visit before it leaves out. What the visit itself is given is whole. Where everything fits, and for a task, the messages are those
// of BuildMessages.
//
// The cost depends on what is returned, not on the length of the run.
func Within(h protocol.History, limit int) (protocol.Told, error) {
	f, err := formatOf(formats, &h)
	if err != nil {
		return protocol.Told{}, err
	}
	t, err := f.dialogue(&h)
	if err != nil {
		return protocol.Told{}, err
	}
	if t.task {
		messages, err := f.taskMessages(&h, t)
		return protocol.Told{Messages: messages}, err
	}
	last, earlier := t.lastWithin(&h.Visit, limit)
	visits := 0
	for x := t.last; x != nil; x = x.before {
		if earlier+x.size > limit/2 {
			break
		}
		visits, earlier = visits+1, earlier+x.size
	}
	return protocol.Told{Messages: t.messages(f.system(&h), visits, last), Earlier: earlier, Omitted: t.visits() - visits}, nil
}

// lastWithin is the message to a visit, with the newest steps since the visit before, and how many bytes tell of these.
func (t *dialogue) lastWithin(v *protocol.Past, limit int) (text string, bytes int) {
	size := func(u userParts) (string, int) {
		text := t.format.user(&u)
		return text, jsonSize(protocol.Message{Role: protocol.RoleUser, Content: text})
	}
	own := t.partsOf(v, func(*protocol.Past) bool { return false })
	own.older, own.newest = 0, nil
	_, whole := size(own)
	left := limit
	u := t.partsOf(v, func(p *protocol.Past) bool {
		left -= weight(p)
		return left >= 0
	})
	text, is := size(u)
	for is > whole+limit && len(u.since) > 0 { // as JSON a text may be longer than it is
		n := (len(u.since) + 1) / 2
		u.older, u.newest, u.since = u.older+n, u.since[n-1], u.since[n:]
		text, is = size(u)
	}
	return text, is - whole
}

// weight is about how much a message says of a step at most, in bytes.
func weight(p *protocol.Past) int { return 64 + min(parentMax, len(p.Text)+len(p.Data)) }

func jsonSize(messages ...protocol.Message) int {
	var buf bytes.Buffer
	encodeLines(&buf, messages)
	return buf.Len()
}
