//go:build !unix

package files

const noFollow, noWait = 0, 0
