package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A toolchain is a job that people give to an agent, as its project and its command line.
type toolchain struct {
	name   string
	probe  string // a line that succeeds, outside, where the toolchain is installed
	files  map[string]string
	line   string
	want   string // in the output
	serves bool   // it listens, which without a network namespace is allowed with the network alone
}

// pytest is that of the Python in PATH, or else that of the system.
const pytest = "python3 -m pytest --version >/dev/null 2>&1 || PATH=/usr/bin; python3 -m pytest"

var toolchains = []toolchain{
	{
		name: "npm ci and npm test", probe: "npm --version",
		files: map[string]string{
			"package.json":      `{"name":"it","version":"1.0.0","scripts":{"test":"node --test"},"dependencies":{"dep":"file:./dep"}}`,
			"package-lock.json": `{"name":"it","version":"1.0.0","lockfileVersion":3,"requires":true,"packages":{"":{"name":"it","version":"1.0.0","dependencies":{"dep":"file:./dep"}},"dep":{"version":"1.0.0"},"node_modules/dep":{"resolved":"dep","link":true}}}`,
			"dep/package.json":  `{"name":"dep","version":"1.0.0","main":"index.js"}`,
			"dep/index.js":      "module.exports = n => 2 * n;\n",
			"it.test.js":        "const {test} = require('node:test'), assert = require('node:assert'), twice = require('dep');\ntest('twice', () => assert.equal(twice(2), 4));\n",
		},
		line: "npm ci --no-fund --no-audit && npm test", want: "pass 1",
	},
	{
		name: "pytest", probe: pytest + " --version",
		files: map[string]string{
			"it.py":      "def twice(n):\n    return 2 * n\n",
			"test_it.py": "import subprocess, sys\nfrom it import twice\n\ndef test_twice(tmp_path):\n    (tmp_path / 'f').write_text('x')\n    assert twice(2) == 4\n\ndef test_child():\n    assert subprocess.check_output([sys.executable, '-c', 'print(4)']) == b'4\\n'\n",
		},
		line: pytest, want: "2 passed",
	},
	{
		name: "pytest with a server", probe: pytest + " --version", serves: true,
		files: map[string]string{
			"test_served.py": "import http.server, socket, threading, urllib.request\n\ndef test_served():\n    s = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n    threading.Thread(target=s.serve_forever, daemon=True).start()\n    assert urllib.request.urlopen('http://127.0.0.1:%d/test_served.py' % s.server_port).status == 200\n    s.shutdown()\n",
		},
		line: pytest, want: "1 passed",
	},
	{
		name: "python venv", probe: "python3 -m venv -h",
		line: "python3 -m venv --without-pip .venv && . .venv/bin/activate && python -c 'import sys; print(sys.prefix)'", want: "/.venv\n",
	},
	{
		name: "cargo test", probe: "cargo --version && cc --version",
		files: map[string]string{
			"Cargo.toml":     "[package]\nname = \"it\"\nversion = \"1.0.0\"\nedition = \"2021\"\n\n[dependencies]\ndep = { path = \"dep\" }\n",
			"src/lib.rs":     "#[cfg(test)]\nmod tests {\n    #[test]\n    fn twice() {\n        assert_eq!(dep::twice(2), 4);\n    }\n}\n",
			"dep/Cargo.toml": "[package]\nname = \"dep\"\nversion = \"1.0.0\"\nedition = \"2021\"\n",
			"dep/src/lib.rs": "pub fn twice(n: i32) -> i32 {\n    2 * n\n}\n",
		},
		line: "cargo test --offline", want: "test tests::twice ... ok",
	},
	{
		name: "make and cc", probe: "make --version && cc --version",
		files: map[string]string{
			"Makefile": "test: it\n\t./it\n\nit: it.c\n\t$(CC) -o $@ $<\n",
			"it.c":     "#include <stdio.h>\n\nint main(void) { return puts(\"built\") < 0; }\n",
		},
		line: "make", want: "\nbuilt\n",
	},
	{
		name: "git commit and branch", probe: "git --version",
		files: map[string]string{"file": "one\n"},
		line: "git init -q . && git add file && git commit -qm first && git checkout -q -b topic && echo two >> file && git commit -qam second && " +
			"git checkout -q - && git merge -q topic && git stash list && git log --format=%s", want: "second\nfirst\n",
	},
}

// What people have agents do works behind the walls, as far as it is installed. .ci/run names those that are not.
func TestToolchainsWorkInside(t *testing.T) {
	home := os.Getenv("HOME")
	for _, tc := range toolchains {
		t.Run(strings.ReplaceAll(tc.name, " ", "_"), func(t *testing.T) {
			if err := exec.Command("sh", "-c", tc.probe).Run(); err != nil {
				t.Skipf("not installed: %s", tc.name)
			}
			onEach(t, func(t *testing.T, s stage) {
				s.policy.Network = tc.serves && !s.namespaces // as the refusal of any other policy says
				// The stage has a home of its own, and toolchains lie in the user's.
				for name, below := range map[string]string{"CARGO_HOME": ".cargo", "RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv"} {
					if dir := filepath.Join(home, below); os.Getenv(name) == "" && s.exists(dir) {
						t.Setenv(name, dir)
					}
				}
				s.write(filepath.Join(s.home, ".gitconfig"), "[user]\n\tname = Ann Lee\n\temail = ann@example.com\n")
				for name, content := range tc.files {
					s.write(filepath.Join(s.work, name), content)
				}
				if out := s.works(tc.line) + "\n"; !strings.Contains("\n"+out, tc.want) {
					t.Errorf("%s said\n%s", tc.line, out)
				}
			})
		})
	}
}
