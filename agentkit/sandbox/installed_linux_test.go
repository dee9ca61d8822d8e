package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wf/agentkit/sandbox"
)

// The settings of npm beside a Node of the system are read, unless a token is among them.
func TestF411SettingsOfNPMAreReadWithoutATokenAlone(t *testing.T) {
	for text, reads := range map[string]bool{
		"registry=https://registry.example.org/\n": true, "//registry.example.org/:_authToken=x\n": false, "_auth = x\n": false, "proxy=http://ada:x@proxy.example.org\n": false,
	} {
		onEach(t, func(t *testing.T, s stage) {
			out := filepath.Join(filepath.Dir(s.work), "programs")
			t.Setenv("PATH", out+":/usr/bin:/bin")
			s.write(filepath.Join(out, "etc/npmrc"), text)
			s.write(filepath.Join(out, "etc/other"), "")
			sandbox.SettingsOfNPM(t, filepath.Join(out, "etc/npmrc"))
			s.works(`cat "` + filepath.Join(out, "etc/other") + `"`)
			if line := `cat "` + filepath.Join(out, "etc/npmrc") + `"`; reads {
				s.works(line)
			} else {
				s.denied(line)
			}
		})
	}
}

// Where a program is installed its own parts are read, and no key that lies beside them.
func TestF411NoKeyBesideAProgramIsRead(t *testing.T) {
	for _, test := range []struct {
		name          string
		environ       map[string]string // OUT is a directory of the user, outside of the home directory
		files         map[string]string
		links         map[string]string
		reads, denies []string
	}{
		{
			name:    "cargo elsewhere",
			environ: map[string]string{"CARGO_HOME": "OUT/cargo", "PATH": "OUT/cargo/bin"},
			files:   map[string]string{"cargo/bin/cargo": "", "cargo/credentials.toml": "", "cargo/credentials": "", "cargo/config.toml": "[build]\n", "cargo/registry/index": ""},
			reads:   []string{"cargo/bin/cargo", "cargo/config.toml", "cargo/registry/index"},
			denies:  []string{"cargo/credentials.toml", "cargo/credentials"},
		},
		{
			name:    "cargo within a directory of PATH",
			environ: map[string]string{"CARGO_HOME": "OUT/local/cargo", "PATH": "OUT:OUT/local"},
			files:   map[string]string{"local/cargo/credentials.toml": "", "local/other/file": "", "file": "", "kube": ""},
			reads:   []string{"local/other/file", "file"},
			denies:  []string{"local/cargo/credentials.toml"},
		},
		{
			name:    "keys that variables name, within a directory of PATH",
			environ: map[string]string{"PATH": "OUT", "KUBECONFIG": "OUT/k/config", "DOCKER_CONFIG": "OUT/docker", "npm_config_userconfig": "OUT/npmrc", "GOOGLE_APPLICATION_CREDENTIALS": "OUT/google.json"},
			files:   map[string]string{"k/config": "", "k/other": "", "docker/config.json": "", "npmrc": "", "google.json": "", "tool": ""},
			reads:   []string{"tool", "k/other"},
			denies:  []string{"k/config", "docker/config.json", "npmrc", "google.json"},
		},
		{
			name:    "a list of places of keys, of which one is not there yet",
			environ: map[string]string{"PATH": "OUT", "KUBECONFIG": "OUT/one:OUT/two", "NETRC": "OUT/later/netrc"},
			files:   map[string]string{"one": "", "two": "", "three": "", "later/tool": ""},
			reads:   []string{"three", "later/tool"},
			denies:  []string{"one", "two"},
		},
		{
			name:    "a place of keys with the separator of lists in its name",
			environ: map[string]string{"PATH": "OUT", "DOCKER_CONFIG": "OUT/dock:er"},
			files:   map[string]string{"tool": "", "dock:er/config.json": ""},
			reads:   []string{"tool"},
			denies:  []string{"dock:er/config.json"},
		},
		{
			name:    "cargo's settings with a token",
			environ: map[string]string{"CARGO_HOME": "OUT/cargo"},
			files:   map[string]string{"cargo/config.toml": "[registries.own]\nindex = 'sparse+https://example.org/'\ntoken = 'secret'\n"},
			denies:  []string{"cargo/config.toml"},
		},
		{
			name:    "cargo's settings with a token in one line",
			environ: map[string]string{"CARGO_HOME": "OUT/cargo"},
			files:   map[string]string{"cargo/config.toml": "registry = {\"token\" = 'secret'}\n"},
			denies:  []string{"cargo/config.toml"},
		},
		{
			name:    "cargo's settings with a key in its environment",
			environ: map[string]string{"CARGO_HOME": "OUT/cargo"},
			files:   map[string]string{"cargo/config.toml": "[env]\nAWS_SECRET_ACCESS_KEY = 'x'\n"},
			denies:  []string{"cargo/config.toml"},
		},
		{
			name:    "cargo's settings with a password in a URL",
			environ: map[string]string{"CARGO_HOME": "OUT/cargo"},
			files:   map[string]string{"cargo/config.toml": "[registries.own]\nindex = 'sparse+https://ada:x@example.org/'\n"},
			denies:  []string{"cargo/config.toml"},
		},
		{
			name:    "the settings of a provider of keys are none",
			environ: map[string]string{"CARGO_HOME": "OUT/cargo"},
			files:   map[string]string{"cargo/config.toml": "[registry]\nglobal-credential-providers = ['cargo:token']\n"},
			reads:   []string{"cargo/config.toml"},
		},
		{
			name:    "a python in a project",
			environ: map[string]string{"PATH": "OUT/app/bin"},
			files:   map[string]string{"app/bin/python3": "", "app/lib/python3.13/os.py": "", "app/pyvenv.cfg": "", "app/.env": "", "app/etc/npmrc": "", "app/key.pem": "", "app/conf/settings.py": "", "secret": ""},
			reads:   []string{"app/bin/python3", "app/lib/python3.13/os.py", "app/pyvenv.cfg"},
			denies:  []string{"app/.env", "app/etc/npmrc", "app/key.pem", "app/conf/settings.py", "secret"},
		},
		{
			name:    "a virtual environment of a project",
			environ: map[string]string{"VIRTUAL_ENV": "OUT/app"},
			files:   map[string]string{"app/bin/python3": "", "app/lib64/os.py": "", "app/.env": ""},
			reads:   []string{"app/bin/python3", "app/lib64/os.py"},
			denies:  []string{"app/.env"},
		},
		{
			name:    "a Java and a Go beside keys",
			environ: map[string]string{"JAVA_HOME": "OUT/jdk", "GOROOT": "OUT/go"},
			files:   map[string]string{"jdk/conf/security/java.security": "", "jdk/lib/modules": "", "jdk/keystore.jks": "", "go/VERSION": "", "go/src/fmt/print.go": "", "go/pkg/tool/x": "", "go/.netrc": ""},
			reads:   []string{"jdk/conf/security/java.security", "jdk/lib/modules", "go/VERSION", "go/src/fmt/print.go", "go/pkg/tool/x"},
			denies:  []string{"jdk/keystore.jks", "go/.netrc"},
		},
		{
			name:    "a link to a program beside keys",
			environ: map[string]string{"PATH": "OUT/links"},
			files:   map[string]string{"tools/node": "", "tools/secret": "", "tools/lib/secret": "", "other/pkg/lib/node_modules/yarn/bin/yarn.js": "", "other/pkg/lib/node_modules/dependency/index.js": "", "other/pkg/lib/secret": "", "other/pkg/secret": ""},
			links:   map[string]string{"links/node": "../tools/node", "links/yarn": "../other/pkg/lib/node_modules/yarn/bin/yarn.js"},
			reads:   []string{"links/node", "links/yarn", "tools/node", "other/pkg/lib/node_modules/dependency/index.js"},
			denies:  []string{"tools/secret", "tools/lib/secret", "other/pkg/lib/secret", "other/pkg/secret"},
		},
		{
			name:    "a compiler for another system",
			environ: map[string]string{"PATH": "OUT/gcc/bin"},
			files:   map[string]string{"gcc/bin/gcc": "", "gcc/x86_64-conda-linux-gnu/sysroot/file": "", "gcc/conda-meta/state": ""},
			reads:   []string{"gcc/x86_64-conda-linux-gnu/sysroot/file"},
			denies:  []string{"gcc/conda-meta/state"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s stage) {
				out := filepath.Join(filepath.Dir(s.work), "programs")
				for name, value := range test.environ {
					value = strings.ReplaceAll(value, "OUT", out)
					if name == "PATH" {
						value += ":/usr/bin:/bin"
					}
					t.Setenv(name, value)
				}
				for name, text := range test.files {
					s.write(filepath.Join(out, name), text)
					if err := os.Chmod(filepath.Join(out, name), 0o755); err != nil {
						t.Fatal(err)
					}
				}
				for name, to := range test.links {
					if err := os.MkdirAll(filepath.Join(out, filepath.Dir(name)), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.Symlink(to, filepath.Join(out, name)); err != nil {
						t.Fatal(err)
					}
				}
				for _, name := range test.reads {
					s.works(`cat "` + filepath.Join(out, name) + `"`)
				}
				for _, name := range test.denies {
					if _, err := os.Stat(filepath.Join(out, name)); err != nil {
						t.Fatal(err)
					}
					s.denied(`cat "` + filepath.Join(out, name) + `"`)
				}
			})
		})
	}
}
