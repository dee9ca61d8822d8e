package protocol

import (
	"fmt"
	"strings"
)

// Plural counts things in words: 1 step, 3 steps.
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Article puts a or an in front of a word.
func Article(word string) string {
	if word != "" && strings.ContainsRune("aeiou", rune(word[0])) {
		return "an " + word
	}
	return "a " + word
}

// Edits counts the letters that are put in, left out, replaced or swapped with the next to make b of a.
func Edits(a, b string) int {
	s, t := []rune(a), []rune(b)
	var before []int
	prev := make([]int, len(t)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(s); i++ {
		row := make([]int, len(t)+1)
		row[0] = i
		for j := 1; j <= len(t); j++ {
			differ := 1
			if s[i-1] == t[j-1] {
				differ = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+differ)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev = prev, row
	}
	return prev[len(t)]
}

// ShellWord writes a word so that a shell reads it as it is, with quotes where it has need of them: bash, dash, and zsh, to which
// [, ] and, with extendedglob, # and ^ are patterns that have to fit a file, and =name is the place of a program.
func ShellWord(s string) string {
	plain := func(c rune) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("_-./:@%+,=…", c)
	}
	if s != "" && s[0] != '=' && strings.IndexFunc(s, func(c rune) bool { return !plain(c) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// ShellCommand is a command line of these words, each as ShellWord writes it. Whatever wf prints to be pasted is made by it.
func ShellCommand(words ...string) string {
	line := make([]string, len(words))
	for i, w := range words {
		line[i] = ShellWord(w)
	}
	return strings.Join(line, " ")
}
