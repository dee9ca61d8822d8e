package http

import (
	"crypto/tls"
	"sync/atomic"
)

// certificates hands out the newest certificate. It is loaded again when the files change, so
// that a renewed one needs no restart of the server.
type certificates struct {
	cert, key string
	current   atomic.Pointer[tls.Certificate]
}

// reload reads the certificate from its files.
func (c *certificates) reload() error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return err
	}
	c.current.Store(&pair)
	return nil
}

func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.current.Load(), nil
}
