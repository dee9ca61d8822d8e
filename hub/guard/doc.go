// Package guard decides which clients may use a server of wf: how it listens, by which names it is
// called, and which credentials open it.
//
//	peer uid │ Host ─► Origin ─► cross-site ─► query ─► token │ login ─► scopes ─► handler
//
// A request is refused at the first thing that is wrong, before anything of it is acted on.
// Limits of headers, time and bodies hold before credentials are looked at.
//
// # Words
//
//	key      a token of 32 random bytes from a file of mode 0600, with its scopes
//	code     what a browser is opened with, in the fragment of the address: good once. It belongs to the key
//	         that asked for it, or to the owner's where the server prints it or its socket was asked
//	login    the token that a code is exchanged for; it is bound to the key of the code, the page and the server,
//	         lasts for 12 hours at most and is sent as tokens are
//	peer     where a connection or request comes from, as bounds count it: an IPv4 address, the /64 of an IPv6 address
//	place    what a client holds for a while, of those that there are: of a peer, until it has shown a key, a login or a
//	         signature; then of that. The oldest of those who have the most gives way to the next one
//	scope    read, run, answer or admin: what credentials allow, decided here and never by the client
//
// # Promised
//
// A token is wanted on TCP always, on loopback too: other users, containers and web pages
// reach it. Beyond loopback a server starts only with TLS. A token in a query string is
// refused, and so is never needed there. No CORS header is ever sent.
//
// # Not promised
//
// Protection from programs of the same user: they can read the token file. No cookie is
// set or accepted: cookies know no ports, and go to every server on the same host name.
package guard
