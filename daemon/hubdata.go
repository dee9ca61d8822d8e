package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"wf/hub/guard"
	"wf/protocol"
	"wf/service/compose"
)

// hubData is the data directory of a hub. Beside its queue a hub keeps there what the other processes of its user
// need to reach it.
type hubData string

// openHubData is a directory that is named, else the user's. It need not be there.
func openHubData(dir string) (hubData, error) {
	if dir != "" {
		return hubData(dir), nil
	}
	state, err := compose.UserDir("XDG_STATE_HOME", ".local/state")
	if err != nil {
		return "", protocol.Hinted(err, "name a directory with --data DIR")
	}
	return hubData(filepath.Join(state, "hub")), nil
}

func (d hubData) file(name string) string { return filepath.Join(string(d), name) }

// socket is where it listens for processes of its user: no token is needed there.
func (d hubData) socket() string { return d.file("wf.sock") }

// tokens is the file with the tokens that open it.
func (d hubData) tokens() string { return d.file("tokens") }

// addresses are the URLs at which it listened last: its tokens are for those alone.
func (d hubData) addresses() ([]string, error) {
	b, err := os.ReadFile(d.file("addresses"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, protocol.ErrUnauthorized.With("give --hub-token-file FILE", "addresses of the hub: %v", err)
	}
	return strings.Fields(string(b)), nil
}

// keepAddresses writes down where it listens.
func (d hubData) keepAddresses(all []*Listener) error {
	var text strings.Builder
	for _, l := range all {
		for _, h := range l.Guard.Hosts {
			if scheme, _, ok := strings.Cut(l.URL, "://"); ok {
				fmt.Fprintf(&text, "%s://%s\n", scheme, h)
			}
		}
	}
	path := d.file("addresses")
	if err := errors.Join(os.WriteFile(path+".new", []byte(text.String()), 0o600), os.Rename(path+".new", path)); err != nil {
		return fmt.Errorf("addresses of the hub: %w", err)
	}
	return nil
}

// workerToken is the file with the token that workers share. It is made when it is not there, and the
// token put among those that open the hub.
func (d hubData) workerToken(keys *guard.Keys) (string, error) {
	path := d.file("agent.token")
	_, err := os.Stat(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	token, err := keys.AddShared()
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("token for workers: %w", err)
	}
	return path, nil
}

// newWorker makes a token that is good for one worker alone, and a file with it.
func (d hubData) newWorker(id string, keys *guard.Keys) (string, error) {
	line, err := keys.AddWorker(id)
	if err != nil {
		return "", err
	}
	path := filepath.Join(d.file("agents"), id+".token")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("token for the worker %s: %w", id, err)
	}
	if err := os.WriteFile(path, []byte(line+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("token for the worker %s: %w", id, err)
	}
	return path, nil
}
