package mcp

import (
	"slices"
	"strings"
)

// A runner is what a program runs besides what its command names.
type runner struct {
	endings  bool     // a name stands for files with an ending (tools/server for tools/server.js), or a module
	packages bool     // a name is looked for in node_modules
	first    bool     // what is run is the first argument that is no option
	projects []string // files that say what is run, in the directory of the command or above
	pinned   bool     // NAME@VERSION is run without them
}

// scripts are the endings of files that are programs.
var scripts = []string{
	".bash", ".cjs", ".cts", ".jar", ".js", ".jsx", ".lua", ".mjs", ".mts", ".php", ".pl", ".py", ".pyz", ".rb", ".sh", ".ts", ".tsx", ".zsh",
}

var runners = map[string]runner{
	"bun":      {endings: true, packages: true, first: true, projects: []string{"package.json", "bunfig.toml"}},
	"bundle":   {projects: []string{"Gemfile"}},
	"bunx":     {packages: true, first: true},
	"cargo":    {projects: []string{"Cargo.toml"}},
	"composer": {projects: []string{"composer.json"}},
	"deno":     {endings: true, projects: []string{"deno.json", "deno.jsonc"}},
	"go":       {projects: []string{"go.mod", "go.work"}, pinned: true},
	"gradle":   {projects: []string{"build.gradle", "build.gradle.kts"}},
	"hatch":    {projects: []string{"pyproject.toml"}},
	"java":     {endings: true},
	"just":     {projects: []string{"justfile", "Justfile", ".justfile"}},
	"lua":      {endings: true},
	"make":     {projects: []string{"Makefile", "makefile", "GNUmakefile"}},
	"mise":     {projects: []string{"mise.toml", ".mise.toml"}},
	"mvn":      {projects: []string{"pom.xml"}},
	"nix":      {projects: []string{"flake.nix"}},
	"node":     {endings: true},
	"nodejs":   {endings: true},
	"npm":      {packages: true, first: true, projects: []string{"package.json", ".npmrc"}},
	"npx":      {packages: true, first: true, projects: []string{".npmrc"}},
	"pdm":      {projects: []string{"pyproject.toml"}},
	"perl":     {endings: true},
	"php":      {endings: true},
	"pipenv":   {projects: []string{"Pipfile"}},
	"pipx":     {first: true},
	"pnpm":     {packages: true, first: true, projects: []string{"package.json", ".npmrc", "pnpm-workspace.yaml"}},
	"pnpx":     {packages: true, first: true, projects: []string{".npmrc"}},
	"poetry":   {projects: []string{"pyproject.toml"}},
	"pypy":     {endings: true},
	"python":   {endings: true},
	"rake":     {projects: []string{"Rakefile"}},
	"ruby":     {endings: true},
	"task":     {projects: []string{"Taskfile.yml", "Taskfile.yaml"}},
	"ts-node":  {endings: true, projects: []string{"tsconfig.json"}},
	"tsx":      {endings: true, projects: []string{"tsconfig.json"}},
	"uv":       {projects: []string{"pyproject.toml", "uv.toml"}},
	"uvx":      {first: true, projects: []string{"uv.toml"}},
	"yarn":     {packages: true, first: true, projects: []string{"package.json", ".yarnrc.yml", ".yarnrc"}},
}

// runnerNamed is that of a program. Its name may end in a version: python3.12.
func runnerNamed(program string) runner {
	if r, ok := runners[program]; ok {
		return r
	}
	return runners[strings.TrimRight(program, "0123456789.")]
}

func (r runner) any() bool { return r.endings || r.packages || r.first || len(r.projects) > 0 }

func (r runner) and(s runner) runner {
	return runner{r.endings || s.endings, r.packages || s.packages, r.first || s.first, slices.Concat(r.projects, s.projects), r.pinned || s.pinned}
}

// finds are the names under which a program looks for a word, but for itself.
func (r runner) finds(word string) []string {
	if !r.endings {
		return nil
	}
	out := []string{word}
	if module, _, dotted := strings.Cut(word, "."); dotted && module != "" {
		out = append(out, module) // python -m tools.server
	}
	return out
}
