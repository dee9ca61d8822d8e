package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// units are the units by their names, with how systemd-analyze looks at them.
var units = map[string]struct {
	data []byte
	of   string
}{"wf.service": {unit, "--user"}, "wf-server.service": {serverUnit, "--system"}}

// systemd understands every line of the units, where it is installed. The program of the unit and its manual, which
// need not be installed here, are put aside.
func TestSystemdTakesTheUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	for name, u := range units {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			verify := func(text string) (string, error) {
				t.Helper()
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), analyze, "verify", u.of, path)
				cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
				out, err := cmd.CombinedOutput()
				if strings.Contains(string(out), "Failed to initialize manager") {
					t.Skipf("systemd-analyze does not work here: %s", out)
				}
				return string(out), err
			}
			text := strings.ReplaceAll(string(u.data), "/usr/bin/wf", "/bin/true")
			text = strings.ReplaceAll(text, "Documentation=man:wf-serve(1)\n", "")
			if out, err := verify(text); err != nil || strings.Contains(out, name) {
				t.Errorf("%v\n%s", err, out)
			}
			if out, _ := verify(strings.Replace(text, "NoNewPrivileges=yes", "NoNewPrivilege=yes", 1)); !strings.Contains(out, name) {
				t.Errorf("a mistake is not found: %s", out)
			}
		})
	}
}

// What a unit must not have: wf could not confine commands under it (systemd.exec(5), "Sandboxing").
var breaksWalls = regexp.MustCompile(`(?m)^(Protect[A-Z]\w*|Private[A-Z]\w*|ReadOnlyPaths|ReadWritePaths|InaccessiblePaths|ExecPaths|NoExecPaths|TemporaryFileSystem|Bind\w*Paths|Root[A-Z]\w*|Mount[A-Z]\w*|DynamicUser|RestrictNamespaces|RestrictSUIDSGID|MemoryDenyWriteExecute|ProcSubset)=`)

func TestTheUnitsLeaveTheWallsStanding(t *testing.T) {
	for name, u := range units {
		if found := breaksWalls.FindAllString(string(u.data), -1); len(found) > 0 {
			t.Errorf("%s has %v", name, found)
		}
		for line := range strings.Lines(string(u.data)) {
			if strings.HasPrefix(line, "SystemCallFilter=") && (!strings.HasPrefix(line, "SystemCallFilter=~") || strings.Contains(line, "@mount") || strings.Contains(line, "@privileged") || strings.Contains(line, "@sandbox")) {
				t.Errorf("%s denies calls that walls are built of: %s", name, line)
			}
		}
		if !strings.Contains(string(u.data), "NoNewPrivileges=yes\n") {
			t.Errorf("%s lets commands gain rights", name)
		}
	}
	if !breaksWalls.MatchString("[Service]\nProtectSystem=strict\n") || breaksWalls.MatchString("# (ProtectSystem, PrivateTmp)\n") {
		t.Error("it is not told what breaks walls")
	}
}
