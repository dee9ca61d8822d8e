package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"wf/files"
	"wf/protocol"
)

// Power is what a person trusts something with.
type Power string

// The powers there are.
const (
	Serve      Power = "serve"      // a definition: a daemon starts it when a client asks
	Schedule   Power = "schedule"   // a definition with its schedule: a daemon starts it by the clock
	Webhook    Power = "webhook"    // a definition with its webhook: a daemon starts it when another service sends an event
	Remember   Power = "remember"   // a definition whose agents change the memory of the user unasked, where a daemon starts it
	Unconfined Power = "unconfined" // a definition with sandbox: off: what agents write runs as the user

	Notify        Power = "notify"       // a definition, or a project: notifications about runs go where it says
	StartServer   Power = "mcp"          // a server of tools: its program is started as the user, or it is handed what its entry names
	SendPrompts   Power = "provider"     // a provider of a project: it gets prompts, and its key
	ChooseDefault Power = "model"        // the default model of a project
	OfferModels   Power = "allow_models" // models of a project that clients of a daemon may choose
	OpenWalls     Power = "sandbox"      // what commands may read and use by the word of a project
	SetPrices     Power = "prices"       // prices of a project, by which limits of cost hold
)

// Powers are all of them.
var Powers = []Power{Serve, Schedule, Webhook, Remember, Unconfined, StartServer, SendPrompts, ChooseDefault, OfferModels, OpenWalls, SetPrices, Notify}

// Grant is one thing that was trusted with one power. That of a definition holds in its directory alone, where the same text starts
// the same scripts; what is in a config is trusted by its CID, wherever it lies.
type Grant struct {
	Power  Power         `json:"power"`
	CID    protocol.Link `json:"cid"`
	Name   string        `json:"name"`
	File   string        `json:"file,omitempty"`   // where it lay
	Dir    string        `json:"dir,omitempty"`    // of a definition: the directory of its file, without links
	Digest string        `json:"digest,omitempty"` // of a definition: that of the texts of it and its sub-workflows; "" is not known
	Text   string        `json:"text,omitempty"`   // its source, to show what a later one changes
}

// Grants are the set of what a person trusts, a file for each. The zero Grants trust nothing.
type Grants struct {
	Dir   string          // in the state directory of the user; "" is nowhere
	Given []protocol.Link // trusted for this process alone, with any power: --trust, WF_TRUST
}

// GrantsIn are the grants that are kept in a state directory, with those that were given.
func GrantsIn(stateDir string, given []protocol.Link) Grants {
	if stateDir == "" {
		return Grants{Given: given}
	}
	return Grants{Dir: filepath.Join(stateDir, "trust"), Given: given}
}

func (g Grants) path(power Power, cid protocol.Link) string {
	return filepath.Join(g.Dir, string(power), cid.String()+".json")
}

// Has reports whether a CID is trusted with a power.
func (g Grants) Has(power Power, cid protocol.Link) (bool, error) {
	if slices.Contains(g.Given, cid) {
		return true, nil
	}
	if g.Dir == "" {
		return false, nil
	}
	raw, err := os.ReadFile(g.path(power, cid))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read what is trusted: %w", err)
	}
	var x Grant
	return json.Unmarshal(raw, &x) == nil && x.Power == power && x.CID == cid, nil
}

// kept is where a grant is kept.
func (g Grants) kept(x Grant) string {
	if x.Dir == "" {
		return g.path(x.Power, x.CID)
	}
	return filepath.Join(g.Dir, string(x.Power), strings.Join([]string{dirName(x.Dir), cmp.Or(x.Digest, "none"), x.CID.String(), "json"}, "."))
}

// dirName is how a directory is called in the names of grants.
func dirName(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:16])
}

// Holds reports whether a definition is trusted with its power: by a grant for its directory, with the same texts or the same CID.
// Where its directory is not known, one for a directory in the workspace counts that has its CID. A grant of an earlier version of wf holds
// for its file.
func (g Grants) Holds(x Grant, workspace string) (bool, error) {
	if slices.Contains(g.Given, x.CID) {
		return true, nil
	}
	if g.Dir == "" {
		return false, nil
	}
	names, err := filepath.Glob(filepath.Join(g.Dir, string(x.Power), "*.json"))
	if err != nil {
		return false, fmt.Errorf("read what is trusted: %w", err)
	}
	dir, cid := dirName(x.Dir), x.CID.String()
	for _, path := range names { // most are told apart by their names
		part := strings.Split(filepath.Base(path), ".")
		switch {
		case len(part) == 2 && part[0] == cid:
		case len(part) == 4 && (part[0] == dir && part[1] == x.Digest || (part[0] == dir || x.Dir == "") && part[2] == cid):
		default:
			continue
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // taken back meanwhile
		}
		if err != nil {
			return false, fmt.Errorf("read what is trusted: %w", err)
		}
		var old Grant
		if json.Unmarshal(raw, &old) == nil && old.Power == x.Power && old.covers(x, workspace) {
			return true, nil
		}
	}
	return false, nil
}

// covers reports whether a grant that was given is for a definition.
func (g Grant) covers(x Grant, workspace string) bool {
	same := g.CID == x.CID
	if x.Dir == "" {
		dir := cmp.Or(g.Dir, filepath.Dir(g.File))
		return same && workspace != "" && (dir == workspace || strings.HasPrefix(dir, strings.TrimSuffix(workspace, "/")+"/"))
	}
	if g.Dir == "" { // of an earlier version
		return same && sameFile(g.File, x.File)
	}
	return g.Dir == x.Dir && (same || x.Digest != "" && g.Digest == x.Digest)
}

func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// Add trusts something.
func (g Grants) Add(x Grant) error {
	err := errors.New("there is no state directory: set HOME or XDG_STATE_HOME")
	if g.Dir != "" {
		path := g.kept(x)
		var raw []byte
		if raw, err = json.Marshal(x); err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
		if err == nil {
			err = files.Replace(path, raw)
		}
	}
	if err != nil {
		return fmt.Errorf("keep what is trusted: %w", err)
	}
	return nil
}

// Remove takes the trust in all back that has a CID, wherever it lies; what was not trusted is no error.
func (g Grants) Remove(power Power, cid protocol.Link) error {
	return g.remove(power, func(name string) bool { return name == cid.String() || strings.HasSuffix(name, "."+cid.String()) })
}

// Withdraw takes the trust in the texts of a definition back in its directory, whatever CID an earlier version of wf gave them.
func (g Grants) Withdraw(x Grant) error {
	if x.Digest == "" {
		return nil
	}
	return g.remove(x.Power, func(name string) bool { return strings.HasPrefix(name, dirName(x.Dir)+"."+x.Digest+".") })
}

func (g Grants) remove(power Power, is func(name string) bool) error {
	if g.Dir == "" {
		return nil
	}
	all, err := filepath.Glob(filepath.Join(g.Dir, string(power), "*.json"))
	errs := []error{err}
	for _, path := range all {
		if !is(strings.TrimSuffix(filepath.Base(path), ".json")) {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("take trust back: %w", err)
	}
	return nil
}

// List is the set, by power, name and CID. What does not read as a grant is left out, and trusts nothing:
// an empty file is easier to have made than a whole one.
func (g Grants) List() ([]Grant, error) {
	if g.Dir == "" {
		return nil, nil
	}
	all, err := filepath.Glob(filepath.Join(g.Dir, "*", "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list what is trusted: %w", err)
	}
	var out []Grant
	for _, path := range all {
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // taken back meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("list what is trusted: %w", err)
		}
		var x Grant
		if json.Unmarshal(raw, &x) == nil && x.CID.Defined() {
			out = append(out, x)
		}
	}
	protocol.Sort(out, func(a, b Grant) int {
		return strings.Compare(string(a.Power)+"\x00"+a.Name+"\x00"+a.CID.String(), string(b.Power)+"\x00"+b.Name+"\x00"+b.CID.String())
	})
	return out, nil
}

// Change is how something differs from the nearest that is trusted with the same power: a unified
// diff, "" where nothing is near.
func (g Grants) Change(x Grant) (string, error) {
	all, err := g.List()
	if err != nil {
		return "", err
	}
	best := ""
	for _, old := range all {
		if old.Power != x.Power || old.Name != x.Name || old.Text == "" {
			continue
		}
		if d := udiff.Unified("trusted", "now", old.Text, x.Text); d != "" && (best == "" || len(d) < len(best)) {
			best = d
		}
	}
	return best, nil
}
