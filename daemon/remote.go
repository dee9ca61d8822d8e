package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"slices"
	"strings"

	"wf/files"
	"wf/hub/client"
	"wf/protocol"
)

// A Remote says how another server is reached: a hub, or a daemon. The fields are what the user says; empty ones
// leave it to the system.
type Remote struct {
	URL       string // http://…, https://… or unix:PATH; of hubs that serve one fleet all, with commas between
	TokenFile string
	CA        string // file with certificates (PEM) to trust instead of the system's
	Cert, Key string // files: the certificate of this worker, for a hub that wants one
	// Admin lets those who have scope admin at the hub have it at this worker too: they import archives, and bring
	// definitions.
	Admin bool
	// Capacity is how many runs this worker drives when the hub gives it another; 0 is twice the number of CPUs, and at least 4.
	Capacity int
}

// Secure is the TLS of the connection, nil for the system's.
func (r Remote) Secure() (*tls.Config, error) {
	if r.CA == "" && r.Cert == "" && r.Key == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13}
	if r.CA != "" {
		pool, err := certificates("--hub-ca", r.CA)
		if err != nil {
			return nil, err
		}
		c.RootCAs = pool
	}
	if r.Cert != "" || r.Key != "" {
		own, err := tls.LoadX509KeyPair(r.Cert, r.Key)
		if err != nil {
			return nil, protocol.ErrUsage.With("", "--hub-cert %s with --hub-key %s: %v", r.Cert, r.Key, err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}

// certificates reads those of a file (PEM), which a flag names.
func certificates(flag, path string) (*x509.CertPool, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, protocol.ErrUsage.With("", "%s: %v", flag, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, protocol.ErrUsage.With("", "%s %s holds no certificate", flag, path)
	}
	return pool, nil
}

// Way is the address at which a server is spoken to, and how. A token that the user names goes where the user
// says. One that WF_HUB_TOKEN_FILE names, or that the hub of this machine left behind, goes over TCP of this
// machine only to a process of the same user, since any user may listen on a free port; and the latter only
// to the addresses of that hub, which is reached by its socket instead where it has one.
func (r Remote) Way() (url string, o client.Options, err error) {
	if o.TLS, err = r.Secure(); err != nil {
		return r.URL, o, err
	}
	if _, _, err := client.Reach(r.URL, o.TLS); err != nil {
		return r.URL, o, err // no token is looked for, for what is no address
	}
	if r.TokenFile != "" {
		o.Token, err = ReadToken(r.TokenFile)
		return r.URL, o, err
	}
	if path := os.Getenv("WF_HUB_TOKEN_FILE"); path != "" {
		o.Own = true
		o.Token, err = ReadToken(path)
		return r.URL, o, err
	}
	if strings.HasPrefix(r.URL, "unix:") {
		return r.URL, o, nil
	}
	data, err := openHubData("")
	if err != nil {
		return r.URL, o, err
	}
	known, err := data.addresses()
	if err != nil {
		return r.URL, o, err
	}
	if !slices.Contains(known, strings.TrimRight(r.URL, "/")) {
		const fix = "give the token for that address with --hub-token-file FILE, or set WF_HUB_TOKEN_FILE"
		if len(known) > 0 {
			return r.URL, o, protocol.ErrUnauthorized.With(fix, "%s wants a token, and the stored one is for %s alone", r.URL, strings.Join(known, " and "))
		}
		return r.URL, o, protocol.ErrUnauthorized.With(fix, "%s wants a token, and no wf hub of yours has listened there", r.URL)
	}
	if path := data.socket(); files.Exists(path) {
		o.TLS = nil
		return "unix:" + path, o, nil
	}
	o.Own = true
	o.Token, err = ReadToken(data.tokens())
	return r.URL, o, err
}

// each is a Remote for each address.
func (r Remote) each() (all []Remote) {
	for url := range strings.SplitSeq(r.URL, ",") {
		one := r
		one.URL = strings.TrimSpace(url)
		all = append(all, one)
	}
	return all
}

// Dial is a client of the server, or of the servers. The caller closes it.
func (r Remote) Dial() (*client.API, error) {
	var all []*client.API
	for _, one := range r.each() {
		server, err := one.dial()
		if err != nil {
			return nil, err
		}
		all = append(all, server)
	}
	return client.Several(all), nil
}

func (r Remote) dial() (*client.API, error) {
	url, o, err := r.Way()
	if err != nil {
		return nil, err
	}
	return client.New(url, o)
}
