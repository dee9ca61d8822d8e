package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What the environment names in the workspace, commands can replace by a link: it gives nothing that lies
// elsewhere to the next command.
func TestALinkOfACommandOpensNothing(t *testing.T) {
	for _, place := range []struct{ name, at, to string }{
		{"VIRTUAL_ENV", "venv", "OUTSIDE"},
		{"VIRTUAL_ENV", "below/venv", "OUTSIDE"},
		{"JAVA_HOME", "java", "OUTSIDE"},
		{"NODE_PATH", "node_modules", "OUTSIDE"},
		{"PIP_CACHE_DIR", "pip", "OUTSIDE"},
		{"npm_config_cache", "npm", "OUTSIDE"},
		{"GOCACHE", "go-build", "OUTSIDE"},
		{"GOMODCACHE", "mod", "OUTSIDE"},
		{"GOENV", "goenv", "OUTSIDE/file"},
		{"PATH", "bin", "OUTSIDE"},
		{"PATH", "bin/cargo", "OUTSIDE/file"},
	} {
		t.Run(place.name+" "+place.at, func(t *testing.T) {
			onEach(t, func(t *testing.T, s stage) {
				value := filepath.Join(s.work, place.at)
				if place.name == "PATH" {
					value = filepath.Join(s.work, "bin") + ":" + os.Getenv("PATH")
				}
				t.Setenv(place.name, value)
				link := filepath.Join(s.work, place.at)
				s.works(`mkdir -p "` + filepath.Dir(link) + `" && ln -s "` + strings.Replace(place.to, "OUTSIDE", s.outside, 1) + `" "` + link + `"`)
				if _, err := os.Stat(link); err != nil {
					t.Fatal("the link leads nowhere: ", err)
				}
				s.denied(`cat "$OUTSIDE/file"`)
				s.denied(`ls "$OUTSIDE"`)
			})
		})
	}
}

// A path that the policy names is followed by the same rule.
func TestALinkOfACommandOpensNothingThatThePolicyReads(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		s.policy.Read = append(s.policy.Read, filepath.Join(s.work, "data"))
		s.works(`ln -s "$OUTSIDE" data`)
		s.denied(`cat "$OUTSIDE/file"`)
	})
}

// A link that commands cannot write is followed.
func TestALinkOfTheUserIsFollowed(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		s.write(filepath.Join(s.home, "tools/one/file"), "the tool")
		link := filepath.Join(s.home, "tool")
		if err := os.Symlink("tools/../tools/one", link); err != nil {
			t.Fatal(err)
		}
		t.Setenv("GOMODCACHE", link)
		if got := s.works(`cat "$GOMODCACHE/file"`); got != "the tool" {
			t.Error(got)
		}
	})
}

// A command can close the directories that it has for itself, but only to itself.
func TestACommandClosesNothingToTheNext(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		cache := filepath.Join(s.home, "npm")
		s.write(filepath.Join(cache, "file"), "cached")
		t.Setenv("npm_config_cache", cache)
		line := `chmod 000 "$HOME" "$TMPDIR" "$GOCACHE"`
		if s.namespaces {
			line += ` "$npm_config_cache"`
		}
		s.works(line)
		for _, dir := range []string{"HOME", "TMPDIR", "GOCACHE"} {
			if got := s.works(`stat -c %a "$` + dir + `"`); got != "700" {
				t.Errorf("%s has mode %s", dir, got)
			}
		}
		s.works(`cat "$npm_config_cache/file" && mktemp && touch "$HOME/x"`)
		if s.namespaces {
			if got := s.works(`stat -c %a "$npm_config_cache"`); got != "700" {
				t.Errorf("the cache has mode %s", got)
			}
		}
	})
}
