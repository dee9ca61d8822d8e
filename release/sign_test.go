package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// secretKey writes a secret key as minisign -G -W does, with a part of it changed.
func secretKey(t *testing.T, change func(b []byte) []byte) string {
	t.Helper()
	_, secret, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b := bytes.Join([][]byte{[]byte("Ed\x00\x00B2"), make([]byte, 48), []byte("8 bytes!"), secret, make([]byte, 32)}, nil)
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("untrusted comment: minisign encrypted secret key\n"+base64.StdEncoding.EncodeToString(change(b))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func unchanged(b []byte) []byte { return b }

// The signature holds of the list and of its comment, by the standard library and by the programs that users have.
func TestTheSumsAreSigned(t *testing.T) {
	k, err := readKey(secretKey(t, unchanged))
	if err != nil {
		t.Fatal(err)
	}
	r := small()
	r.toolchain, r.key = "go1.26.0", k
	all := made(t, r)
	if again := made(t, r)["SHA256SUMS.minisig"]; !bytes.Equal(again, all["SHA256SUMS.minisig"]) || strings.Contains(string(all["SHA256SUMS"]), "minisig") {
		t.Error("the signature is listed, or is made anew with other bytes")
	}
	lines := strings.Split(string(all["SHA256SUMS.minisig"]), "\n")
	comment, ok := strings.CutPrefix(lines[2], "trusted comment: ")
	if len(lines) != 5 || !ok || comment != "wf 1.2.0 0123456789abcdef go1.26.0" {
		t.Fatalf("%q", lines)
	}
	public := k.secret.Public().(ed25519.PublicKey)
	signature, err := base64.StdEncoding.DecodeString(lines[1])
	if err != nil || string(signature[:10]) != "Ed8 bytes!" || !ed25519.Verify(public, all["SHA256SUMS"], signature[10:]) {
		t.Errorf("the signature of the list does not hold: %v", err)
	}
	both, err := base64.StdEncoding.DecodeString(lines[3])
	if err != nil || !ed25519.Verify(public, append(signature[10:], comment...), both) {
		t.Errorf("the signature of the comment does not hold: %v", err)
	}

	dir := t.TempDir()
	for name, data := range map[string][]byte{"SHA256SUMS": all["SHA256SUMS"], "SHA256SUMS.minisig": all["SHA256SUMS.minisig"], "key.pub": fmt.Appendf(nil, "untrusted comment: public key\n%s\n", k.public())} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range [][]string{
		{"minisign", "-V", "-m", "SHA256SUMS", "-P", k.public()},
		{"signify-openbsd", "-V", "-p", "key.pub", "-x", "SHA256SUMS.minisig", "-m", "SHA256SUMS"},
	} {
		t.Run(c[0], func(t *testing.T) {
			program, err := exec.LookPath(c[0])
			if err != nil {
				t.Skip(err)
			}
			verify := func() (string, error) {
				cmd := exec.Command(program, c[1:]...)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			if out, err := verify(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			if err := os.WriteFile(filepath.Join(dir, "SHA256SUMS"), append([]byte("0"), all["SHA256SUMS"][1:]...), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := verify(); err == nil {
				t.Errorf("a list that was changed is verified:\n%s", out)
			}
			if err := os.WriteFile(filepath.Join(dir, "SHA256SUMS"), all["SHA256SUMS"], 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A key that minisign made signs what it verifies.
func TestAKeyOfMinisignIsRead(t *testing.T) {
	program, err := exec.LookPath("minisign")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	secret, public := filepath.Join(dir, "k.sec"), filepath.Join(dir, "k.pub")
	if out, err := exec.Command(program, "-G", "-W", "-s", secret, "-p", public).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	k, err := readKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(public); err != nil || !strings.Contains(string(text), k.public()+"\n") {
		t.Errorf("%v: have %s, want %s", err, k.public(), text)
	}
}

func TestAKeyThatCannotSignIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func([]byte) []byte
		why    string
	}{
		"a password":     {func(b []byte) []byte { b[2], b[3] = 'S', 'c'; return b }, "has a password"},
		"a changed seed": {func(b []byte) []byte { b[keySecret]++; return b }, "is damaged"},
		"a public key":   {func(b []byte) []byte { return b[:42] }, "is no secret key"},
		"another kind":   {func(b []byte) []byte { b[0] = 'X'; return b }, "is no secret key"},
	} {
		if _, err := readKey(secretKey(t, c.change)); err == nil || !strings.Contains(err.Error(), c.why) || !strings.Contains(err.Error(), "minisign -G -W") {
			t.Errorf("%s: %v, want %q", name, err, c.why)
		}
	}
	if _, err := readKey(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
