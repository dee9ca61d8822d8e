// Package auth checks passwords.
package auth

import (
	"crypto/sha256"
	"crypto/subtle"
)

// hash is what is kept of a password.
func hash(password, salt string) [32]byte {
	return sha256.Sum256([]byte(salt + password))
}

// Check compares a password with its hash, in the same time whether it fits or not.
func Check(password, salt string, want [32]byte) bool {
	got := hash(password, salt)
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}
