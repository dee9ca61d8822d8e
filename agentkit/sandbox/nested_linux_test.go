package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"wf/agentkit/sandbox"
	"wf/protocol"
)

// repository makes a git directory as far as git looks at it.
func (s stage) repository(git, config string) {
	s.t.Helper()
	for name, content := range map[string]string{"HEAD": "ref: refs/heads/main\n", "config": config, "info/exclude": "#", "hooks/sample": "#", "objects/x": "", "refs/x": ""} {
		s.write(filepath.Join(s.work, git, name), content)
	}
}

// What controls a repository within the workspace is read-only, wherever it is, as for the one of the
// workspace.
func TestNestedRepositoriesAreProtected(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		needsRoot(t, s)
		s.repository(".git", "[core]\n\thooksPath = .husky/_\n[include]\n\tpath = ../team.gitconfig\n")
		s.repository(".git/modules/sub", "")
		s.repository("vendor/x/.git", "[core]\n\thooksPath = .githooks\n[extensions]\n\tworktreeConfig = true\n")
		s.repository("fixtures/bare", "")
		s.write(filepath.Join(s.work, "sub/.git"), "gitdir: ../.git/modules/sub\n")
		s.write(filepath.Join(s.work, "inner/.wf/config.yaml"), "model: x\n")
		s.write(filepath.Join(s.work, ".husky/_/h"), "true\n")
		s.write(filepath.Join(s.work, ".husky/pre-commit"), "true\n")
		s.write(filepath.Join(s.work, "team.gitconfig"), "")
		s.write(filepath.Join(s.work, "vendor/x/.githooks/pre-commit"), "true\n")
		s.write(filepath.Join(s.work, ".git/rebase-merge/git-rebase-todo"), "pick 1\n")
		s.write(filepath.Join(s.work, "vendor/x/.git/rebase-apply/next"), "1\n")
		s.works(`echo x > vendor/x/.git/index && echo x > vendor/x/file && echo x > vendor/x/.git/objects/new && echo x > fixtures/bare/refs/new && echo x > sub/file && echo x > inner/file && echo x > .git/modules/sub/index`)
		for _, git := range []string{"vendor/x/.git", "fixtures/bare", ".git/modules/sub"} {
			s.denied(`echo '[core] fsmonitor = evil' >> ` + git + `/config`)
			s.denied(`echo evil > ` + git + `/hooks/pre-commit`)
			s.denied(`rm -r ` + git + `/hooks`)
			s.denied(`echo x > ` + git + `/info/attributes`)
			s.denied(`mv ` + git + ` away`)
		}
		s.denied(`mv vendor/x vendor/y`)
		s.denied(`mv vendor v`)
		s.denied(`echo "gitdir: ../evil" > sub/.git`)
		s.denied(`rm sub/.git`)
		s.denied(`echo x > inner/.wf/config.yaml`)
		s.denied(`rm -r inner/.wf`)
		for _, hook := range []string{".husky/pre-commit", ".husky/pre-push", ".husky/_/h", "team.gitconfig", "vendor/x/.githooks/pre-commit"} {
			s.denied(`echo evil > ` + hook)
		}
		s.denied(`mv .husky husky`)
		s.denied(`echo 'exec evil' >> .git/rebase-merge/git-rebase-todo`)
		s.denied(`echo 'exec evil' > new && mv new .git/rebase-merge/git-rebase-todo`)
		s.denied(`rm -r .git/rebase-merge`)
		s.denied(`echo x > vendor/x/.git/rebase-apply/next`)
	})
}

// What no mount can keep from being made is gone when the command has ended.
func TestNothingThatControlsANestedRepositoryAppears(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		s.write(filepath.Join(s.work, ".git/HEAD"), "ref: refs/heads/main\n")
		s.write(filepath.Join(s.work, "x/.git/HEAD"), "ref: refs/heads/main\n")
		s.write(filepath.Join(s.work, "x/.git/config"), "[extensions]\n\tworktreeConfig = true\n")
		s.write(filepath.Join(s.work, ".git/worktrees/w/gitdir"), "x")
		for _, made := range []string{"x/.git/hooks/pre-commit", "x/.git/commondir", "x/.git/config.worktree", ".git/config.worktree", ".git/worktrees/w/config.worktree"} {
			out := s.works(`mkdir -p $(dirname ` + made + `) && echo evil > ` + made)
			if s.exists(filepath.Join(s.work, made)) {
				t.Errorf("%s is there", made)
			}
			if !strings.Contains(out, "[sandbox: removed ") {
				t.Errorf("%s is not told of: %q", made, out)
			}
		}
	})
}

// git runs git as the user, outside of the sandbox.
func (s stage) git(dir string, args ...string) {
	s.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = filepath.Join(s.work, dir)
	cmd.Env = append(os.Environ(), gitUser...)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

var gitUser = []string{"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}

// git has to work in nested repositories, those of submodules and worktrees included.
func TestGitWorksInNestedRepositories(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	onEach(t, func(t *testing.T, s stage) {
		s.policy.Environ = append(s.policy.Environ, gitUser...)
		s.policy.Environ = append(s.policy.Environ, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always")
		s.git("", "init", "-q", "--bare", "origin")
		s.git("", "clone", "-q", "origin", "seed")
		s.git("seed", "commit", "-q", "--allow-empty", "-m", "one")
		s.git("seed", "push", "-q", "origin", "HEAD:main")
		s.git("", "init", "-q", ".")
		s.git("", "submodule", "add", "-q", "./origin", "lib")
		s.git("", "commit", "-q", "-m", "one")
		s.git("", "worktree", "add", "-q", "tree")
		for _, dir := range []string{"seed", "lib", "tree"} {
			s.works(`cd ` + dir + ` && git checkout -q -b base && echo 1 > file && git add file && git commit -q -m two && git branch other && git checkout -q -b feature && echo x > file && git stash -q && git stash pop -q &&
				git commit -q -a -m three && git checkout -q base && git merge -q --no-ff -m four feature && git tag t` + dir + ` && git reset -q --hard HEAD~1 && git rebase -q feature && git gc -q && git status && git fsck`)
			// A rebase stops within one command and goes on in the next, with commands of its own.
			code, out := s.sh(`cd ` + dir + ` && git checkout -q other && echo y > file && git commit -q -a -m five && git rebase -x true feature`)
			if code == 0 {
				t.Errorf("%s: no conflict: %s", dir, out)
			}
			s.works(`cd ` + dir + ` && echo z > file && git add file && GIT_EDITOR=true git rebase --continue && test ! -e "$(git rev-parse --git-path rebase-merge)"`)
		}
		s.works(`git add lib && git commit -q -m lib && git -C lib push -q origin HEAD:main`)
		// A submodule is fetched for the first time.
		s.git("", "clone", "-q", ".", "fresh")
		s.git("fresh", "config", "submodule.lib.url", filepath.Join(s.work, "origin"))
		s.works(`cd fresh && git submodule update -q && cat lib/file`)
		s.works(`git -C seed checkout -q -B main && git -C seed fetch -q && git -C seed merge -q origin/main -m m --allow-unrelated-histories && git -C seed push -q origin main`)
		// What a command made, the next may remove.
		s.works(`git init -q made && git clone -q origin cloned && echo x > made/.git/hooks/pre-commit`)
		s.works(`rm -r made cloned`)
	})
}

// told runs a command that must succeed, and gives what appeared.
func (s stage) told(line string) *protocol.Appeared {
	s.t.Helper()
	var got *protocol.Appeared
	s.policy.Appeared = func(a *protocol.Appeared) { got = a }
	s.works(line)
	return got
}

func TestWhatACommandLeavesIsTold(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		if got := s.told(`mkdir -p a/b && echo x > a/b/c`); got != nil {
			t.Errorf("of nothing it tells %v", got)
		}
		got := s.told(`mkdir -p sub/.git lib && touch -d 2001-01-01 sub && echo "gitdir: ../evil" > lib/.git && ln -s "$OUTSIDE" way && echo x > .envrc && mkdir .vscode bare bare/objects bare/refs inner inner/.wf && echo x > bare/HEAD && echo x > .vscode/tasks.json`)
		want := "made tasks of an editor, .vscode/tasks.json, a bare git repository in bare/, a .wf in inner/, a link to a git repository in lib/, " +
			"a git repository in sub/, an .envrc in the workspace: wf does not act on it; your editor, git, direnv may; wf trusts nothing in that .wf"
		if got.String() != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		if got := s.told(`true`); got != nil {
			t.Errorf("it tells %v again", got)
		}
	})
}

// A server works all the time; what appears meanwhile is that of the commands beside it.
func TestACommandThatLastsIsNotBesideOthers(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		other := s
		s.policy.Lasting = true
		s.policy.Appeared = func(a *protocol.Appeared) { t.Errorf("the server tells %v", a) }
		s.afterStart(`mkdir -p late/.git`, func() {
			if got := other.told(`mkdir -p sub/.git`); got == nil || len(got.Found) != 1 || got.Beside {
				t.Errorf("the command tells %v", got)
			}
		})
	})
}

// Each repository is a few mounts. Which ones are beyond their bound is told, once.
func TestMoreRepositoriesThanAreProtected(t *testing.T) {
	onEach(t, func(t *testing.T, s stage) {
		needsRoot(t, s)
		for i := range 70 {
			s.write(filepath.Join(s.work, fmt.Sprintf("r/%02d/.git/config", i)), "")
		}
		if got := s.told(`true`); got == nil || got.Unprotected != 6 {
			t.Errorf("it tells %v", got)
		}
		s.denied(`echo x > r/63/.git/config`)
		s.works(`echo x > r/64/.git/config`)
		if got := s.told(`true`); got != nil {
			t.Errorf("it tells %v again", got)
		}
	})
}

// BenchmarkNested runs a command in a workspace of some repositories.
func BenchmarkNested(b *testing.B) {
	if tier := sandbox.Probe(); !tier.Namespaces {
		b.Skip("no namespaces here: ", tier)
	}
	for _, n := range []int{0, 1, 8, 64} {
		s := newStage(b, sandbox.Run, true)
		for i := range n {
			s.repository(fmt.Sprintf("r/%02d/.git", i), "")
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := s.run(b.Context(), s.policy, []string{"true"}, nil, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
