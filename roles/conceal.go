package roles

import (
	"maps"
	"sync"
	"sync/atomic"
)

// concealMin is the length in bytes from which a key is concealed. A shorter one is a stand-in, such
// as the key that a model server on this machine does not ask for, and a part of ordinary words.
const concealMin = ShortSecret

// concealed are the keys that this process has read, by their values.
var concealed keyring

type keyring struct {
	version atomic.Uint64 // counts the changes
	mu      sync.Mutex
	names   map[string]string // value → name
	made    *matcher
}

// Conceal makes the value of a key a secret of every Redactor of this process, for its whole life: a
// provider may echo the key of a request in an error or an answer. Name is that of the variable which
// holds it. A value under 8 bytes conceals nothing.
func Conceal(name, value string) {
	if len(value) < concealMin {
		return
	}
	concealed.mu.Lock()
	defer concealed.mu.Unlock()
	if _, there := concealed.names[value]; there {
		return
	}
	if concealed.names == nil {
		concealed.names = map[string]string{}
	}
	concealed.names[value], concealed.made = name, nil
	concealed.version.Add(1)
}

// HideKeys hides the keys of this process, and what has the shape of a key, in a text.
func HideKeys(text string) string { return new(Redactor).String(text) }

// keys are all of them, value → name.
func (k *keyring) keys() map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.names)
}

// matcher finds the concealed keys alone.
func (k *keyring) matcher() *matcher {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.made == nil {
		k.made = newMatcher(nil, k.names)
		k.made.version = k.version.Load()
	}
	return k.made
}
