package guard

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"wf/files"
	"wf/protocol"
)

// tokenBytes is how much chance a token, a code and a nonce hold.
const tokenBytes = 32

// mostKeys bounds a file of tokens, in bytes.
const mostKeys = 1 << 20

// Keys are the tokens of a file, with the codes and logins made from them.
//
// Each line is a token and its scopes; a token alone has all of them. What follows # is the name
// under which the runs record the user of the token; without one it is Owner for a token of all
// scopes, else the id of the key. The file is read again when it changes: a token that was taken out of it, and the
// logins made from it, are good no longer.
//
//	mJ0…Wk
//	2lq…9A  read           # dashboard
//	Xe3…1b  metrics        # prometheus
//	9fK…7s  run rate:60/h  # ci: 60 requests at once, and then one a minute
//	b7X…0c  agent:desk-1   # may register at a hub as desk-1, and as nothing else
type Keys struct {
	path string
	now  func() time.Time

	// Owner is the name of the user of tokens without a name; "" is none. It is set before use.
	Owner string

	mu     sync.Mutex
	stamp  fs.FileInfo // of the file as it was read
	list   []key
	codes  map[[sha256.Size]byte]login
	logins map[[sha256.Size]byte]login
}

type key struct {
	id     string // names the key, and tells nothing about the token
	sum    string // tells keys apart, whoever chose a token
	name   string // of its user, or ""
	secret []byte // the token as it is sent
	scopes []Scope
	worker string // id of the only worker that the key may be, or ""
	pace   *pace  // of its requests; nil is no bound
}

// OpenKeys reads a file of tokens. One that does not exist is made, mode 0600, with one token
// of all scopes. A file that others may read, or that belongs to another user, is refused. now
// may be nil.
func OpenKeys(path string, now func() time.Time) (*Keys, error) {
	if now == nil {
		now = time.Now
	}
	k := &Keys{path: path, now: now, codes: map[[sha256.Size]byte]login{}, logins: map[[sha256.Size]byte]login{}}
	if err := makeKeys(path); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k, k.refresh()
}

// Path is where the tokens lie.
func (k *Keys) Path() string { return k.path }

// newSecret is fresh chance as text.
func newSecret() string {
	b := make([]byte, tokenBytes)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return base64.RawURLEncoding.EncodeToString(b)
}

// makeKeys writes a first token, unless the file is there.
func makeKeys(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	if err := writeKey(path, os.O_CREATE|os.O_EXCL, newSecret()); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// writeKey writes a line of a token, so that it is durable.
func writeKey(path string, flags int, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|flags, 0o600)
	if err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	_, err = f.WriteString(line + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("tokens %s: %w", path, err)
	}
	return nil
}

// refresh reads the file if it is not as it was. The caller holds mu.
func (k *Keys) refresh() error {
	info, err := os.Stat(k.path)
	if err != nil {
		k.list, k.stamp = nil, nil // what cannot be read opens nothing
		return fmt.Errorf("tokens: %w", err)
	}
	if k.stamp != nil && os.SameFile(k.stamp, info) && k.stamp.Size() == info.Size() && k.stamp.ModTime().Equal(info.ModTime()) {
		return nil
	}
	k.list, k.stamp = nil, nil
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return protocol.ErrInsecure.With("chmod 600 "+k.path, "the token file %s has mode %v: others may read it", k.path, info.Mode())
	}
	if uid, ok := ownerOf(info); ok && uid != os.Geteuid() {
		return protocol.ErrInsecure.With("use a file of your own with --token-file", "the token file %s belongs to user %d", k.path, uid)
	}
	b, err := files.ReadNamed(k.path, mostKeys)
	if err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	list, err := parseKeys(b)
	if err != nil {
		return fmt.Errorf("tokens %s: %w", k.path, err)
	}
	k.list, k.stamp = list, info
	return nil
}

func parseKeys(b []byte) ([]key, error) {
	var list []key
	n := 0
	for line := range strings.Lines(string(b)) {
		n++
		line, name, _ := strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if raw, err := base64.RawURLEncoding.DecodeString(words[0]); err != nil || len(raw) < tokenBytes {
			return nil, fmt.Errorf("line %d: a token is %d random bytes as base64url: %w", n, tokenBytes, protocol.ErrUsage)
		}
		key := key{id: keyID(words[0]), sum: keySum(words[0]), name: nameOf(name), secret: []byte(words[0])}
		for _, w := range words[1:] {
			if text, ok := strings.CutPrefix(w, ratePrefix); ok {
				var err error
				if key.pace, err = parsePace(text); err != nil {
					return nil, fmt.Errorf("line %d: %w", n, err)
				}
				continue
			}
			id, bound := strings.CutPrefix(w, workerPrefix)
			switch {
			case bound && (!ValidWorker(id) || key.worker != ""):
				return nil, fmt.Errorf("line %d: %q names no worker; want agent:ID once, with an ID of at most 128 letters, digits, '.', '_' and '-': %w", n, w, protocol.ErrUsage)
			case bound:
				key.worker, w = id, string(Worker)
			case !slices.Contains([]Scope{Read, Run, Answer, Admin, Metrics, Worker}, Scope(w)):
				return nil, fmt.Errorf("line %d: no scope %q; there are read, run, answer, admin, metrics, agent and agent:ID, and rate:N/s, /m or /h: %w", n, w, protocol.ErrUsage)
			}
			key.scopes = append(key.scopes, Scope(w))
		}
		if key.scopes == nil {
			key.scopes = AllScopes
		}
		list = append(list, key)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no token in it: %w", protocol.ErrUsage)
	}
	return list, nil
}

// longestName is the length of the name of a token's user at most, in bytes.
const longestName = 100

// nameOf is the name in a comment; "" where that is none.
func nameOf(comment string) string {
	name := strings.TrimSpace(comment)
	if len(name) > longestName || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return ""
	}
	return name
}

// keySum is the hash of a token.
func keySum(secret string) string {
	sum := sha256.Sum256([]byte("wf key\x00" + secret))
	return hex.EncodeToString(sum[:])
}

// keyID names a key without revealing it.
func keyID(secret string) string { return keySum(secret)[:12] }

// current are the keys as the file has them now; none if it cannot be read.
func (k *Keys) current() ([]key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.refresh()
	return k.list, err
}

// byToken finds the identity of a token. Every key is compared, in constant time.
func (k *Keys) byToken(token string) (Identity, bool) {
	list, _ := k.current() // none if it cannot be read
	return k.find(list, func(x *key) bool { return subtle.ConstantTimeCompare(x.secret, []byte(token)) == 1 })
}

// ofKey is the identity of the key with a sum; false where it is no longer in the file.
func (k *Keys) ofKey(list []key, sum string) (Identity, bool) {
	return k.find(list, func(x *key) bool { return x.sum == sum })
}

// find is the identity of the one key that is meant. Of lines with the same token the last one counts, for the token
// as for its codes and logins: none of them may do more than another. Every key is looked at.
func (k *Keys) find(list []key, meant func(*key) bool) (Identity, bool) {
	var found *key
	for i := range list {
		if meant(&list[i]) {
			found = &list[i]
		}
	}
	if found == nil {
		return Identity{}, false
	}
	return k.identity(found), true
}

func (k *Keys) identity(x *key) Identity {
	id := Identity{Name: x.name, Scopes: x.scopes, Worker: x.worker, proof: proof{key: x.sum, pace: x.pace}}
	switch {
	case id.Name != "":
	case k.Owner != "" && id.allowsAll():
		id.Name = k.Owner
	default:
		id.Name = "key " + x.id
	}
	return id
}

// workerPrefix begins the word that binds a token to a worker.
const workerPrefix = string(Worker) + ":"

// ValidWorker reports whether a worker id can be named in a file of tokens.
func ValidWorker(id string) bool {
	return id != "" && len(id) <= 128 && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
	})
}

// NamesWorker reports whether a token of the file is bound to a worker. While the file cannot be
// read every worker counts as named: then no token opens anything.
func (k *Keys) NamesWorker(id string) bool {
	list, err := k.current()
	return err != nil || slices.ContainsFunc(list, func(x key) bool { return x.worker == id })
}

// AddWorker puts a new token into the file that is bound to a worker, and returns the line to give
// to that worker: TOKEN agent:ID. An id that cannot be named, or that has a token already, is an
// error wrapping protocol.ErrUsage.
func (k *Keys) AddWorker(id string) (line string, err error) {
	switch {
	case !ValidWorker(id):
		return "", fmt.Errorf("worker id %.140q: want 1 to 128 letters, digits, '.', '_' and '-': %w", id, protocol.ErrUsage)
	case k.NamesWorker(id):
		return "", fmt.Errorf("%s has a token for the worker %s already; take its line out first: %w", k.path, id, protocol.ErrUsage)
	}
	line = newSecret() + " " + workerPrefix + id
	return line, k.add(line)
}

// AddShared puts a new token into the file for every worker with an id that no other token names.
func (k *Keys) AddShared() (token string, err error) {
	token = newSecret()
	return token, k.add(token + " " + string(Worker) + "  # for wf serve --hub")
}

func (k *Keys) add(line string) error {
	old, err := files.ReadNamed(k.path, mostKeys)
	if err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	if len(old) > 0 && old[len(old)-1] != '\n' {
		line = "\n" + line
	}
	return writeKey(k.path, os.O_APPEND, line)
}

// owner is the identity of the owner's token: the first with all scopes that has the name of the owner or none, else
// the first with all scopes. No other token is ever the owner's, since what its codes do is recorded under its name.
// Without one the error wraps protocol.ErrForbidden.
func (k *Keys) owner() (Identity, error) {
	list, err := k.current()
	if err != nil {
		return Identity{}, err
	}
	var first *Identity
	for i := range list {
		id, ok := k.ofKey(list, list[i].sum) // as the line says that counts
		switch {
		case !ok || !id.allowsAll():
		case id.Name == k.Owner:
			return id, nil
		case first == nil:
			first = &id
		}
	}
	if first == nil {
		return Identity{}, protocol.ErrForbidden.With("add a line with a token alone to "+k.path+": it has all scopes, and counts at once",
			"no token in %s has all scopes, and a code for the owner belongs to such a token", k.path)
	}
	return *first, nil
}
