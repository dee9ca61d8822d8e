package config

import (
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

// Grant is one thing that was trusted with one power. It holds wherever the thing lies, and in
// whatever branch: what counts is its CID.
type Grant struct {
	Power Power         `json:"power"`
	CID   protocol.Link `json:"cid"`
	Name  string        `json:"name"`
	File  string        `json:"file,omitempty"` // where it lay
	Text  string        `json:"text,omitempty"` // its source, to show what a later one changes
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

// Add trusts something.
func (g Grants) Add(x Grant) error {
	err := errors.New("there is no state directory: set HOME or XDG_STATE_HOME")
	if g.Dir != "" {
		path := g.path(x.Power, x.CID)
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

// Remove takes trust back; what was not trusted is no error.
func (g Grants) Remove(power Power, cid protocol.Link) error {
	if g.Dir == "" {
		return nil
	}
	if err := os.Remove(g.path(power, cid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
