package guard

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// How long a browser may take to exchange a code, and how long its session then lasts.
const (
	CodeLife    = 10 * time.Minute
	SessionLife = 7 * 24 * time.Hour
)

// maxCodes bounds the codes that are open at once; the oldest gives way.
const maxCodes = 64

// cookiePrefix begins the name of a session's cookie. Cookies know no ports: the id of the key
// follows, so that two servers of one machine do not take each other's place.
const cookiePrefix = "wf_session_"

// code is a code that was not used yet.
type code struct {
	key     string // id
	expires time.Time
}

// NewCode makes a one-time code for a browser of the owner, good for CodeLife. Codes live in
// memory: a restart of the server forgets them, sessions it remembers.
func (k *Keys) NewCode() (string, error) {
	owner, err := k.owner()
	if err != nil {
		return "", err
	}
	secret := newSecret()
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	var oldest [sha256.Size]byte
	var first time.Time
	for h, c := range k.codes {
		if now.After(c.expires) {
			delete(k.codes, h)
		} else if first.IsZero() || c.expires.Before(first) {
			oldest, first = h, c.expires
		}
	}
	if len(k.codes) >= maxCodes {
		delete(k.codes, oldest)
	}
	k.codes[sha256.Sum256([]byte(secret))] = code{owner.id, now.Add(CodeLife)}
	return secret, nil
}

// redeem exchanges a code for the cookie of a session. A code is looked up by its hash: how
// long that takes tells nothing of it.
func (k *Keys) redeem(text string) (*http.Cookie, Identity, bool) {
	list, err := k.current()
	if err != nil {
		return nil, Identity{}, false
	}
	k.mu.Lock()
	h := sha256.Sum256([]byte(text))
	c, ok := k.codes[h]
	delete(k.codes, h)
	k.mu.Unlock()
	if !ok || k.now().After(c.expires) {
		return nil, Identity{}, false
	}
	for i := range list {
		if list[i].id == c.key {
			return list[i].session(k.now().Add(SessionLife)), k.identity(&list[i]), true
		}
	}
	return nil, Identity{}, false
}

// session is the cookie of a session: when it ends, and a proof by the key. The server keeps
// nothing of it, so it outlives a restart, and ends with the key.
func (k *key) session(expires time.Time) *http.Cookie {
	until := strconv.FormatInt(expires.Unix(), 10)
	return &http.Cookie{
		Name: cookiePrefix + k.id, Value: until + "." + k.proof(until), Path: "/", Expires: expires.UTC(),
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}

func (k *key) proof(until string) string {
	mac := hmac.New(sha256.New, k.secret)
	mac.Write([]byte("wf session\x00" + until))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// bySession finds who the cookies of a request are of. tried reports whether one of them
// claims to be a session of a key that is known.
func (k *Keys) bySession(cookies []*http.Cookie) (id Identity, ok, tried bool) {
	list, err := k.current()
	if err != nil {
		return Identity{}, false, false
	}
	for _, c := range cookies {
		name, ours := strings.CutPrefix(c.Name, cookiePrefix)
		if !ours {
			continue
		}
		for i := range list {
			if list[i].id != name {
				continue
			}
			tried = true
			until, proof, _ := strings.Cut(c.Value, ".")
			genuine := subtle.ConstantTimeCompare([]byte(proof), []byte(list[i].proof(until))) == 1
			if ends, err := strconv.ParseInt(until, 10, 64); genuine && err == nil && k.now().Unix() < ends {
				return k.identity(&list[i]), true, true
			}
		}
	}
	return Identity{}, false, tried
}
