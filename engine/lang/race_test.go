//go:build race

package lang

// The race detector makes work some ten times as long; what bounds it is counted in steps.
func init() { workBound *= 10 }
