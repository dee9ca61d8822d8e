package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"wf/daemon"

	"github.com/spf13/pflag"
)

// reachFlags say how another server is reached: a hub, or a daemon.
type reachFlags struct {
	url       string
	tokenFile string
	ca        string // certificates to trust instead of the system's
	cert, key string // that of this agent, for a hub that wants one
	admin     bool   // scope admin at the hub is scope admin here
}

// joinFlags add --hub and what belongs to it to wf serve.
func (f *reachFlags) join(flags *pflag.FlagSet) {
	flags.StringVar(&f.url, "hub", "", "connect to this hub, so that others can follow and start runs here")
	flags.StringVar(&f.tokenFile, "hub-token-file", "", "file with the token for agents of the hub")
	flags.StringVar(&f.ca, "hub-ca", "", "certificate (PEM) that signed the hub's, instead of those of the system")
	flags.StringVar(&f.cert, "hub-cert", "", "certificate of this agent, for a hub with --client-ca")
	flags.StringVar(&f.key, "hub-key", "", "its key")
	flags.BoolVar(&f.admin, "hub-admin", false, "let those of scope admin at the hub do here what needs it: import archives, bring definitions, choose any model")
}

// tls is the TLS of the connection, nil for the system's.
func (f reachFlags) tls() (*tls.Config, error) {
	if f.ca == "" && f.cert == "" && f.key == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13}
	if f.ca != "" {
		pool, err := certificates("--hub-ca", f.ca)
		if err != nil {
			return nil, err
		}
		c.RootCAs = pool
	}
	if f.cert != "" || f.key != "" {
		own, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, usagef("--hub-cert %s with --hub-key %s: %v", f.cert, f.key, err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}

// certificates reads those of a file (PEM), which a flag names.
func certificates(flag, path string) (*x509.CertPool, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("%s: %v", flag, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, usagef("%s %s holds no certificate", flag, path)
	}
	return pool, nil
}

// joinHub connects the daemon to a hub, until stop is called. stop is never nil.
func (a *app) joinHub(d *daemon.Daemon, f reachFlags) (stop func(), err error) {
	secure, err := f.tls()
	if err != nil {
		return func() {}, err
	}
	return d.Join(daemon.Hub{URL: f.url, TLS: secure, TokenFile: f.tokenFile, Admin: f.admin, Own: func(url string) (string, error) {
		way, err := (&app{reach: f}).reachHub(url)
		return way.url, err
	}})
}
