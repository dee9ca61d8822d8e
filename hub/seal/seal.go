// Package seal keeps what a hub has to store, and must not read, between the moment in which it is submitted and the
// moment in which a worker begins it.
//
//	request ──Close──► box + key          the box lies at the hub, the key is forgotten
//	              key ──For──► sealed key          one for each worker, by its public key
//	box + sealed key ──Identity.Open──► request          at a worker
//	sealed key ──Identity.Pass──► sealed key of another worker          at a worker, for one that joins later
//
// A box is AES-256-GCM under a random key of its own, with the job's id and workflow as associated data: it is no box of
// another job. The key is sealed with HPKE in base mode (RFC 9180; DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-256-GCM),
// with the same as info.
//
// # Promised
//
// What lies at a hub cannot be read without the private key of a worker.
//
// # Not promised
//
// Anything against a hub that is dishonest while it runs: requests pass through it, and it says which public key is that of a
// worker. Who has sealed a box is not known.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hpke"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"wf/protocol"
)

// ErrSealed is what cannot be opened: it is damaged, of another job, or for another worker.
var ErrSealed = &protocol.Error{Code: "sealed", Message: "it cannot be opened", Hint: "submit the job again with the same request id"}

// A Job is what a box is bound to.
type Job struct{ ID, Workflow string }

// bound is the job as associated data.
func (j Job) bound() []byte {
	b := append([]byte("wf.box/v1\x00"), binary.BigEndian.AppendUint32(nil, uint32(len(j.ID)))...)
	return append(append(b, j.ID...), j.Workflow...)
}

// keySize of a box, in bytes.
const keySize = 32

func aead(key []byte) (cipher.AEAD, error) {
	b, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(b)
}

// Close puts a text into a box, under a new key.
func Close(j Job, text []byte) (box, key []byte, err error) {
	key = make([]byte, keySize)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	a, err := aead(key)
	if err != nil {
		return nil, nil, err
	}
	return a.Seal(nil, nil, text, j.bound()), key, nil
}

// For seals a key to a public key.
func For(public []byte, j Job, key []byte) ([]byte, error) {
	to, err := hpke.DHKEM(ecdh.X25519()).NewPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("public key: %w: %w", err, protocol.ErrBadRequest)
	}
	return hpke.Seal(to, hpke.HKDFSHA256(), hpke.AES256GCM(), j.bound(), key)
}

// Name is a short name of a public key.
func Name(public []byte) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:8])
}

// An Identity is the private key of a worker.
type Identity struct{ key hpke.PrivateKey }

// NewIdentity makes one.
func NewIdentity() (*Identity, error) {
	k, err := hpke.DHKEM(ecdh.X25519()).GenerateKey()
	return &Identity{k}, err
}

// ParseIdentity reads what Bytes has given.
func ParseIdentity(b []byte) (*Identity, error) {
	k, err := hpke.DHKEM(ecdh.X25519()).NewPrivateKey(b)
	return &Identity{k}, err
}

// Bytes is the identity as it is stored.
func (i *Identity) Bytes() ([]byte, error) { return i.key.Bytes() }

// Public is its public key.
func (i *Identity) Public() []byte { return i.key.PublicKey().Bytes() }

func (i *Identity) unseal(j Job, sealed []byte) ([]byte, error) {
	key, err := hpke.Open(i.key, hpke.HKDFSHA256(), hpke.AES256GCM(), j.bound(), sealed)
	if err != nil {
		return nil, fmt.Errorf("key of job %s: %w: %w", j.ID, err, ErrSealed)
	}
	return key, nil
}

// Open opens a box.
func (i *Identity) Open(j Job, sealed, box []byte) ([]byte, error) {
	key, err := i.unseal(j, sealed)
	if err != nil {
		return nil, err
	}
	a, err := aead(key)
	if err == nil {
		box, err = a.Open(nil, nil, box, j.bound())
	}
	if err != nil {
		return nil, fmt.Errorf("job %s: %w: %w", j.ID, err, ErrSealed)
	}
	return box, nil
}

// Pass seals the key of a box, which this identity has, to another one.
func (i *Identity) Pass(j Job, sealed, public []byte) ([]byte, error) {
	key, err := i.unseal(j, sealed)
	if err != nil {
		return nil, err
	}
	return For(public, j, key)
}
