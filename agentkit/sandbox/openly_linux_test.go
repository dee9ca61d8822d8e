package sandbox_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wf/agentkit/sandbox"
)

// A proxy of modules is often named with a password in its URL, in the environment or by go env -w. Commands get
// the URL without it, unless env names the variable.
func TestNoURLOfTheEnvironmentHoldsAPassword(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		t.Setenv("GOPROXY", "https://ada:pass%40word@proxy.example/go,http://x:p@ss@other.example|direct")
		t.Setenv("GOSUMDB", "sum.example+c0ffee https://ada:password@sum.example")
		t.Setenv("GOFLAGS", "-modcacherw")
		file := filepath.Join(s.home, ".config/go/env")
		t.Setenv("GOENV", file)
		s.write(file, "GOPRIVATE=example.org\nGOPROXY=https://ada:password@third.example\nGONOSUMDB=https://ada:password@x.example\nSECRET=password\nGOCACHE=/etc\n")
		for _, name := range []string{"closed", "online"} {
			s.policy.Network = name == "online"
			env := s.works("env; cat '" + file + "' 2>&1 || :")
			for _, want := range []string{"https://proxy.example/go,http://other.example|direct\n", "GOSUMDB=sum.example+c0ffee https://sum.example\n", "GOFLAGS=-modcacherw\n", "GOPRIVATE=example.org\n"} {
				if !strings.Contains(env+"\n", want) {
					t.Errorf("%s: %q is missing in\n%s", name, want, env)
				}
			}
			for _, leak := range []string{"password", "pass%40word", "p@ss", "//ada", "ada:", "GOCACHE=/etc"} {
				if strings.Contains(env, leak) {
					t.Errorf("%s: %q is in\n%s", name, leak, env)
				}
			}
		}
		s.policy.Environ = append(s.policy.Environ, "GOPROXY=https://ada:password@proxy.example")
		if env := s.works("env"); !strings.Contains(env, "GOPROXY=https://ada:password@proxy.example") {
			t.Errorf("what env names is missing:\n%s", env)
		}
	})
	t.Setenv("GOPROXY", "https://ada:password@proxy.example")
	if env := sandbox.Environ(); !slices.Contains(env, "GOPROXY=https://proxy.example") {
		t.Errorf("without a sandbox: %q", env)
	}
}

// A file of go's settings without a password is read as it is.
func TestGoSettingsWithoutAPasswordAreRead(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		file := filepath.Join(s.home, ".config/go/env")
		t.Setenv("GOENV", file)
		s.write(file, "GOPROXY=https://proxy.example\n")
		if got := s.works("cat '" + file + "'; echo $GOENV"); !strings.Contains(got, "GOPROXY=https://proxy.example") || !strings.HasSuffix(got, file) {
			t.Errorf("have %q", got)
		}
	})
}
