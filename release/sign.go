package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
)

// keyVariable names the file of the key that signs, where no flag does.
const keyVariable = "WF_RELEASE_KEY"

// A key signs as minisign does, by its older form, over the file itself and not over a hash of it: so signify of OpenBSD verifies it too.
type key struct {
	id     []byte // 8 bytes that name it
	secret ed25519.PrivateKey
}

// Parts of a secret key as minisign writes it, by their ends: algorithms of the signature, of the password and of the checksum, salt and costs of the
// password, and then what a password would encrypt: id, secret and checksum.
const (
	keyAlgorithms = 6
	keyID         = keyAlgorithms + 32 + 8 + 8
	keySecret     = keyID + 8
	keyEnd        = keySecret + ed25519.PrivateKeySize
	keyLength     = keyEnd + 32
)

// algorithm is that of a signature over the file itself.
const algorithm = "Ed"

// readKey reads a secret key that has no password.
func readKey(path string) (*key, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the key that signs: %w", err)
	}
	bad := func(why string) (*key, error) {
		return nil, fmt.Errorf("the key that signs, %s, %s: minisign -G -W -s FILE makes one", path, why)
	}
	_, line, _ := strings.Cut(string(text), "\n") // behind a comment
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(line))
	switch {
	case err != nil, len(b) != keyLength, string(b[:2]) != algorithm, string(b[4:keyAlgorithms]) != "B2":
		return bad("is no secret key of minisign")
	case b[2] != 0 || b[3] != 0:
		return bad("has a password, which cannot be asked for here")
	}
	k := &key{b[keyID:keySecret], ed25519.PrivateKey(b[keySecret:keyEnd])}
	if !k.secret.Equal(ed25519.NewKeyFromSeed(k.secret.Seed())) {
		return bad("is damaged")
	}
	return k, nil
}

// public is the key that verifies, as users give it to minisign.
func (k *key) public() string { return k.encode(k.secret.Public().(ed25519.PublicKey)) }

// encode is base64 of what belongs to the key.
func (k *key) encode(b []byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Join([][]byte{[]byte(algorithm), k.id, b}, nil))
}

// sign signs a product. The comment is signed too, and is one line.
func (k *key) sign(p product, comment string) product {
	signature := ed25519.Sign(k.secret, p.data)
	both := ed25519.Sign(k.secret, append(bytes.Clone(signature), comment...))
	return product{p.name + ".minisig", fmt.Appendf(nil, "untrusted comment: signature of %s\n%s\ntrusted comment: %s\n%s\n",
		p.name, k.encode(signature), comment, base64.StdEncoding.EncodeToString(both))}
}
