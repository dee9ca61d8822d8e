// Package lazy puts off what most starts of the program never need: it is started anew for each
// command of an agent, and what packages make when it starts is paid for every time.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp compiles an expression when it is first asked for. It panics then if the expression is
// none, as regexp.MustCompile does.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
