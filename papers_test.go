package wf_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"wf/engine/lang"
)

// papers are the pages for people, each as a path from the root.
func papers(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md"} {
		names, err := fs.Glob(os.DirFS("."), pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = string(text)
		}
	}
	for _, name := range []string{"README.md", "ARCHITECTURE.md", "CHANGELOG.md", "docs/format.md"} {
		if out[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
	return out
}

var (
	proofs  = regexp.MustCompile("`((?:Test|Benchmark|Fuzz)[A-Z][A-Za-z0-9_]*)`")
	defined = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)[A-Za-z0-9_]+)\(`)
)

func TestThePapersNameProofsThatExist(t *testing.T) {
	exists := map[string]bool{}
	files, err := sources(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !f.test() {
			continue
		}
		text, err := os.ReadFile(f.name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range defined.FindAllStringSubmatch(string(text), -1) {
			exists[m[1]] = true
		}
	}
	for name, text := range papers(t) {
		for _, m := range proofs.FindAllStringSubmatch(text, -1) {
			if !exists[m[1]] {
				t.Errorf("%s names %s, which is no test", name, m[1])
			}
		}
	}
}

var links = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)

// Each line of a table of docs/security.md that says what holds names what tries to break it, or says that it is open.
func TestEachLineOfTheSecurityPageNamesItsTest(t *testing.T) {
	_, holds, _ := strings.Cut(papers(t)["docs/security.md"], "\n## What holds\n")
	holds, _, _ = strings.Cut(holds, "\n## What does not hold\n")
	rows := 0
	for _, line := range strings.Split(holds, "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasSuffix(line, "| shown by |") {
			continue
		}
		rows++
		if !proofs.MatchString(line) && !strings.Contains(line, ".txtar`") && !strings.Contains(line, "*open*") && !strings.Contains(line, "](#") {
			t.Errorf("it names no test: %s", line)
		}
	}
	if rows < 100 {
		t.Errorf("%d lines say what holds", rows)
	}
}

func TestTheLinksOfThePapersLeadSomewhere(t *testing.T) {
	for name, text := range papers(t) {
		for _, m := range links.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(path.Join(path.Dir(name), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			}
		}
	}
}

var (
	code  = regexp.MustCompile("`([a-z0-9*_./]+\\.go|[a-z0-9]+(?:/[a-z0-9]+)+)`")
	words = regexp.MustCompile("(?m)^\\| ([^|]+) \\| ([^|]*`[^|]+) \\|$")
)

// The table of files in ARCHITECTURE.md: a name without a directory lies in that of the name
// before it.
func TestTheFilesOfTheArchitectureExist(t *testing.T) {
	text := papers(t)["ARCHITECTURE.md"]
	found := 0
	for _, row := range words.FindAllStringSubmatch(text, -1) {
		dir := ""
		for _, m := range code.FindAllStringSubmatch(row[2], -1) {
			name := m[1]
			if strings.Contains(name, "/") {
				dir = path.Dir(name)
			} else {
				name = path.Join(dir, name)
			}
			hits, err := fs.Glob(os.DirFS("."), name)
			if err != nil {
				t.Fatal(err)
			}
			if len(hits) == 0 {
				t.Errorf("ARCHITECTURE.md, %q: there is no %s", row[1], name)
			}
			found++
		}
	}
	if found < 20 {
		t.Errorf("%d names were found in the table, want 20 or more", found)
	}
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```\n")

// A block that says which wf it is for is a whole workflow, others are parts of one.
func TestTheWorkflowsOfThePapersAreClean(t *testing.T) {
	seen := map[string]bool{}
	for name, text := range papers(t) {
		for _, b := range yamlBlock.FindAllStringSubmatch(text, -1) {
			if !strings.HasPrefix(b[1], "wf: ") {
				continue
			}
			seen[name] = true
			if _, diags := lang.Load([]byte(b[1]), lang.Options{File: name}); len(diags) > 0 {
				var out strings.Builder
				lang.Render(&out, []byte(b[1]), diags, false)
				t.Error(out.String())
			}
		}
	}
	if !seen["README.md"] {
		t.Error("README.md shows no workflow")
	}
}
