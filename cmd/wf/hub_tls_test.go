package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wf/api"
	"wf/daemon"
	"wf/hub/client"
)

// authority signs certificates for a test.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority writes its own certificate to ca.pem.
func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.sign("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	return a
}

// sign writes name.pem and name.key.
func (a *authority) sign(name string, c *x509.Certificate, by *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := c, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	write(a.t, a.dir, name+".pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(a.t, a.dir, name+".key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	made, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return made, key
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// A hub with TLS and a client CA takes an agent that has token and certificate, and tells one
// without the certificate what it lacks. Neither sends its token to a hub that it cannot verify.
func TestAgentsWithCertificates(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts four daemons")
	}
	a := newAuthority(t)
	a.sign("hub", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, a)
	a.sign("agent", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, a)
	home := t.TempDir()
	hub := startProcess(t, home, "hub", "--listen", "127.0.0.1:0", "--data", filepath.Join(home, "data"),
		"--tls-cert", a.file("hub.pem"), "--tls-key", a.file("hub.key"), "--client-ca", a.file("ca.pem"))
	var said api.HubServing
	if err := json.Unmarshal(hub.line, &said); err != nil {
		t.Fatal(err)
	}
	url := said.Listen[0].URL
	if !strings.HasPrefix(url, "https://") {
		t.Fatalf("listens on %s", url)
	}
	agent := func(name string, more ...string) *process {
		dir := filepath.Join(home, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return startProcess(t, dir, append([]string{"serve", "--name", name, "--hub", url, "--hub-token-file", said.AgentToken}, more...)...)
	}
	bare := agent("bare", "--hub-ca", a.file("ca.pem"))
	doubting := agent("doubting", "--hub-cert", a.file("agent.pem"), "--hub-key", a.file("agent.key"))
	agent("proper", "--hub-ca", a.file("ca.pem"), "--hub-cert", a.file("agent.pem"), "--hub-key", a.file("agent.key"))

	token, err := daemon.ReadToken(said.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	secure, err := daemon.Remote{CA: a.file("ca.pem")}.Secure()
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(url, client.Options{Token: token, TLS: secure})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var names []string
	for ctx.Err() == nil && (len(names) == 0 || !strings.Contains(bare.err.String(), "wants a certificate of its agents") ||
		!strings.Contains(doubting.err.String(), "certificate signed by unknown authority")) {
		raw, err := api.Agents(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Items []struct{ Name string } }
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatal(err)
		}
		names = names[:0]
		for _, i := range list.Items {
			names = append(names, i.Name)
		}
	}
	if len(names) != 1 || names[0] != "proper" {
		t.Errorf("agents %v\nbare:\n%s\ndoubting:\n%s", names, bare.err, doubting.err)
	}
}
