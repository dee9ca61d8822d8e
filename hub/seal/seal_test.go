package seal_test

import (
	"bytes"
	"errors"
	"testing"

	"wf/hub/seal"
)

func identity(t *testing.T) *seal.Identity {
	t.Helper()
	i, err := seal.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestABoxIsOpenedByThoseWhoHaveItsKey(t *testing.T) {
	ada, bob, eve := identity(t), identity(t), identity(t)
	job := seal.Job{ID: "job", Workflow: "fix"}
	for _, n := range []int{0, 1, 1 << 20} {
		text := bytes.Repeat([]byte("zebra"), n)
		box, key, err := seal.Close(job, text)
		if err != nil {
			t.Fatal(err)
		}
		forAda, err := seal.For(ada.Public(), job, key)
		if err != nil {
			t.Fatal(err)
		}
		forBob, err := ada.Pass(job, forAda, bob.Public())
		if err != nil {
			t.Fatal(err)
		}
		stored, err := bob.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		again, err := seal.ParseIdentity(stored)
		if err != nil {
			t.Fatal(err)
		}
		for i, sealed := range map[*seal.Identity][]byte{ada: forAda, again: forBob} {
			if got, err := i.Open(job, sealed, box); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d bytes: opened %d, %v", len(text), len(got), err)
			}
		}
		if n > 0 && (bytes.Contains(box, []byte("zebra")) || bytes.Contains(forAda, key)) {
			t.Error("it is not sealed")
		}
		changed := bytes.Clone(box)
		changed[len(changed)-1] ^= 1
		for what, open := range map[string]func() ([]byte, error){
			"by another":                 func() ([]byte, error) { return eve.Open(job, forAda, box) },
			"changed":                    func() ([]byte, error) { return ada.Open(job, forAda, changed) },
			"as another job":             func() ([]byte, error) { return ada.Open(seal.Job{ID: "job2", Workflow: "fix"}, forAda, box) },
			"as of another workflow":     func() ([]byte, error) { return ada.Open(seal.Job{ID: "job", Workflow: "fox"}, forAda, box) },
			"with the border moved":      func() ([]byte, error) { return ada.Open(seal.Job{ID: "jobf", Workflow: "ix"}, forAda, box) },
			"cut off":                    func() ([]byte, error) { return ada.Open(job, forAda, nil) },
			"without a key":              func() ([]byte, error) { return ada.Open(job, nil, box) },
			"passed on by another":       func() ([]byte, error) { return eve.Pass(job, forAda, eve.Public()) },
			"passed on as another job's": func() ([]byte, error) { return ada.Pass(seal.Job{ID: "x"}, forAda, bob.Public()) },
		} {
			if got, err := open(); !errors.Is(err, seal.ErrSealed) {
				t.Errorf("%s: %d bytes, %v", what, len(got), err)
			}
		}
	}
	if _, err := seal.For([]byte("no key"), job, nil); err == nil {
		t.Error("sealed to what is no key")
	}
}
