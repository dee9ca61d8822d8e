package guard

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	"wf/protocol"
)

// How long a browser may take to exchange a code, and how long its login then lasts, at most: where a login asked for
// the code, neither lasts longer than that.
const (
	CodeLife  = 10 * time.Minute
	LoginLife = 12 * time.Hour
)

// How many codes and logins are open at once; the oldest gives way.
const (
	maxCodes  = 64
	maxLogins = 256
)

// NewCode makes a one-time code for a browser of the client that asks. It belongs to the token with which the client
// was let in, also by a login: what is done with it is recorded under the name of that token, is allowed by its scopes,
// and ends with it. A code that a login asks for gives none that lasts longer. The own user of this machine, who needs
// no token at a socket, gets that of OwnerCode. Another client, such as one that a hub introduces, has no token
// here: the error wraps protocol.ErrForbidden.
func (k *Keys) NewCode(by Identity) (code string, expires time.Time, err error) {
	switch {
	case by.proof.own:
		return k.OwnerCode()
	case by.proof.key == "":
		return "", time.Time{}, protocol.ErrForbidden.With("ask the server itself, with one of its tokens or at its socket",
			"%s came without a token of this server, and a code belongs to one", by.Name)
	}
	code, expires = k.newCode(by.proof)
	return code, expires, nil
}

// OwnerCode makes a one-time code for a browser of the owner. It belongs to the owner's token, the first with all
// scopes: one that has no name or that of Owner, if there is one. A file without such a token is an error wrapping
// protocol.ErrForbidden.
func (k *Keys) OwnerCode() (code string, expires time.Time, err error) {
	owner, err := k.owner()
	if err != nil {
		return "", time.Time{}, err
	}
	code, expires = k.newCode(owner.proof)
	return code, expires, nil
}

// newCode makes a code for who showed something. Codes live in memory, as logins do: a restart of the server forgets
// them.
func (k *Keys) newCode(by proof) (code string, expires time.Time) {
	code = newSecret()
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	expires = by.within(now.Add(CodeLife))
	makeRoom(k.codes, maxCodes, now)
	k.codes[sha256.Sum256([]byte(code))] = login{by: by, expires: expires}
	return code, expires
}

// within is a time, or the end of the login that was shown, if that is earlier: a login cannot prolong itself.
func (p proof) within(t time.Time) time.Time {
	if !p.until.IsZero() && p.until.Before(t) {
		return p.until
	}
	return t
}

// place is where a login holds: the origin of the page that logged in, and the Host by which it
// reached the server. They differ where a proxy stands between.
type place struct{ origin, host string }

// placeOf is where a request comes from. A browser names the origin when it sends or opens
// something, and leaves it out when a page reads from its own server.
func placeOf(r *http.Request) place {
	return place{strings.ToLower(r.Header.Get("Origin")), strings.ToLower(r.Host)}
}

// login is a browser that logged in, or a code by which one may.
type login struct {
	by      proof // to whose token it belongs
	at      place // of a login
	expires time.Time
}

// redeem exchanges a code for a login: its token, and when it ends. A code is looked up by its
// hash: how long that takes tells nothing of it. The server keeps logins in memory: one that is
// started again, or another with the same keys, knows none of them.
func (k *Keys) redeem(text string, at place) (token string, ends time.Time, id Identity, ok bool) {
	list, _ := k.current() // none if it cannot be read
	k.mu.Lock()
	defer k.mu.Unlock()
	h, now := sha256.Sum256([]byte(text)), k.now()
	c, ok := k.codes[h]
	delete(k.codes, h)
	if ok = ok && now.Before(c.expires); ok {
		id, ok = k.ofKey(list, c.by.key)
	}
	if !ok {
		return "", ends, Identity{}, false
	}
	token, ends = newSecret(), c.by.within(now.Add(LoginLife))
	makeRoom(k.logins, maxLogins, now)
	k.logins[sha256.Sum256([]byte(token))] = login{c.by, at, ends}
	return token, ends, id, true
}

// makeRoom forgets what has expired, and the oldest if there are too many.
func makeRoom(all map[[sha256.Size]byte]login, most int, now time.Time) {
	var oldest [sha256.Size]byte
	var first time.Time
	for h, x := range all {
		if !now.Before(x.expires) {
			delete(all, h)
		} else if first.IsZero() || x.expires.Before(first) {
			oldest, first = h, x.expires
		}
	}
	if len(all) >= most {
		delete(all, oldest)
	}
}

// byLogin finds the identity of the login with a token, and where it holds.
func (k *Keys) byLogin(token string) (Identity, place, bool) {
	list, _ := k.current() // none if it cannot be read
	k.mu.Lock()
	s, ok := k.logins[sha256.Sum256([]byte(token))]
	k.mu.Unlock()
	if !ok || !k.now().Before(s.expires) {
		return Identity{}, place{}, false
	}
	id, ok := k.ofKey(list, s.by.key)
	id.proof.until = s.expires
	return id, s.at, ok
}

// mayUse is nil if a request may use a login that holds at a place: it comes from the page that
// logged in, by the same name of the server. One that names no origin may only read.
func mayUse(r *http.Request, at place) error {
	from := placeOf(r)
	switch {
	case from.host != at.host || from.origin != "" && from.origin != at.origin:
		return protocol.ErrForbidden.With("log in at this address", "the login is of the page %s", at.origin)
	case from.origin == "" && (!safe(r.Method) || upgrades(r)):
		return protocol.ErrForbidden.With("use a token", "a login without an Origin may only read")
	}
	return nil
}
