package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// listed are the keys and values of a config as git lists them; ok is false where git refuses it.
func listed(t interface{ Fatal(...any) }, file string) (out []string, ok bool) {
	cmd := exec.Command("git", "config", "--file", file, "--list", "--null")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}
	text, err := cmd.Output()
	if err != nil {
		return nil, false
	}
	for item := range strings.SplitSeq(strings.TrimSuffix(string(text), "\x00"), "\x00") {
		if key, value, set := strings.Cut(item, "\n"); set {
			out = append(out, key+"="+value)
		}
	}
	return out, true
}

func read(text string) []string {
	var out []string
	for key, value := range GitConfig(strings.NewReader(text)) {
		out = append(out, key+"="+value)
	}
	return out
}

// Whatever git reads of a config is read here, and what git refuses is not read further.
func TestAConfigIsReadAsGitReadsIt(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	file := filepath.Join(t.TempDir(), "config")
	same := func(t interface {
		Fatal(...any)
		Fatalf(string, ...any)
	}, text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		want, ok := listed(t, file)
		// Before its version 2.45 git takes a blank of any kind for a space.
		blanks := strings.NewReplacer("\t", " ", "\r", " ")
		if got := read(text); ok && blanks.Replace(strings.Join(got, "\x00")) != blanks.Replace(strings.Join(want, "\x00")) {
			t.Fatalf("of %q git reads %q, and this %q", text, want, got)
		}
	}
	for _, text := range []string{
		"", "[core]\n\thooksPath = a\n", "\ufeff[core]\nhooksPath=a", "[core] hooksPath = a", "[core]hooksPath=a\r\n[a.B \"C\\\"d\"]\r\n\tE=f\r\n", "[core]\nhooksPath = ho\\\nok\\\ns\n",
		"[core]\nhooksPath = \"a b\" # c\nbare\nfileMode\t=\tfalse;x\n", "[a]\nb = c\\td\\\\e\\\"f\n", "[a]\nb = \"c ; d\" e  f   \n", "[a]\nb = \"  \"\n", "[a]\nb =\n", "[A.b]\nC=d", "[a]\n# x\n ; y\nb=c",
		"[a \"\"]\nb=c", "[a\t \"x\"] b = c\n", "[a]\n\v\fb = c\n", "[a]\nb = c\rd\r\n",
	} {
		same(t, text)
	}
	part := rapid.SampledFrom([]string{"[core]", "[a \"b\"]", "[A.b]", "hooksPath", "x-1", "=", " ", "\t", "\n", "\r\n", "\r", "\\", "\\\n", "\"", "#", ";", "a", "é", ".", "]", "[", "\v", "\ufeff", "path = b\n", "\\t", "\\\""})
	rapid.Check(t, func(t *rapid.T) {
		same(t, strings.Join(rapid.SliceOfN(part, 0, 14).Draw(t, "parts"), ""))
		same(t, "[core]\nx = "+strings.Join(rapid.SliceOfN(part, 0, 8).Draw(t, "value"), "")+"\n[d]\ne = f\n")
	})
}
