package agentkit

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"

	"wf/protocol"
)

// Withheld keeps the arguments of calls in which a key was hidden, in the memory of this process
// alone: the answer of a person to such a call may take a while, and its visit ends meanwhile. The
// zero Withheld is ready; nil keeps nothing.
type Withheld struct {
	mu    sync.Mutex
	kept  map[string]string
	order []string // of the keys, oldest first
}

// withheldMax is how many calls keep their arguments.
const withheldMax = 256

func (w *Withheld) keep(key, args string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kept == nil {
		w.kept = map[string]string{}
	}
	if _, again := w.kept[key]; !again {
		w.order = append(w.order, key)
	}
	w.kept[key] = args
	if len(w.order) > withheldMax {
		delete(w.kept, w.order[0])
		w.order = w.order[1:]
	}
}

// take gives what is kept, if its digest by seal is that.
func (w *Withheld) take(key, digest string, seal func(string) string) (args string, ok bool) {
	if w == nil {
		return "", false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	args, ok = w.kept[key]
	return args, ok && seal(args) == digest
}

func (w *Withheld) drop(key string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.kept, key)
	if i := slices.Index(w.order, key); i >= 0 {
		w.order = slices.Delete(w.order, i, i+1)
	}
}

// withheldAs is the name of a call of this visit among those of all runs.
func (v *visit) withheldAs(call string) string {
	return strings.Join([]string{string(v.turn.Run), v.turn.Step.String(), call}, "\x00")
}

// remask takes over that a part of the arguments of a call was hidden, and finds them again where
// this process still has them.
func (v *visit) remask(d protocol.ToolCall) {
	if d.Digest == "" {
		return
	}
	v.masked[d.Call], v.lost[d.Call] = d.Digest, true
	if args, ok := v.agent.Withheld.take(v.withheldAs(d.Call), d.Digest, v.agent.sealed); ok {
		v.raw[d.Call], v.lost[d.Call] = args, false
	}
}

// sealPrefix begins what is journaled in the place of a provider's own block in which a key stands, before its seal.
const sealPrefix = `{"withheld":"`

// sealBlock keeps such a block in this process: it may be signed and so cannot be changed, and goes back to its provider and
// nowhere else. What stands for it tells that there was one.
func (v *visit) sealBlock(block string) string {
	seal := v.agent.sealed(block)
	v.blocks[seal] = block
	v.agent.Withheld.keep(v.withheldAs(seal), block)
	return sealPrefix + seal + `"}`
}

// unsealed is a provider's own block, as it came; "" for one that an earlier process kept.
func (v *visit) unsealed(block string) string {
	seal, sealed := strings.CutPrefix(block, sealPrefix)
	if !sealed {
		return block
	}
	seal = strings.TrimSuffix(seal, `"}`)
	if kept, ok := v.blocks[seal]; ok {
		return kept
	}
	kept, ok := v.agent.Withheld.take(v.withheldAs(seal), seal, v.agent.sealed)
	if !ok {
		return ""
	}
	return kept
}

// lacksBlocks reports whether a block was kept by an earlier process, so that it is left out.
func (v *visit) lacksBlocks() bool {
	return slices.ContainsFunc(v.Request(), func(m protocol.Message) bool { return m.Opaque != "" && v.unsealed(m.Opaque) == "" })
}

// sealed is a digest, in hex, of a text with a hidden part: by a key, so that no reader of the journal can try
// what it may have been. It is the same in every visit and fork that this user drives.
func (a *Agent) sealed(text string) string {
	key := a.Seal
	if len(key) == 0 {
		key = processSeal()
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil))
}

// processSeal is the key where none is given.
var processSeal = sync.OnceValue(func() []byte {
	key := make([]byte, sha256.Size)
	rand.Read(key) // never fails
	return key
})

// hexOf is the SHA-256 of a text, in hex.
func hexOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
