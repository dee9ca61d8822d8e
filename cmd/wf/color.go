package main

// A paint colours text for one stream, or leaves it alone.
type paint struct{ on bool }

func (p paint) sgr(code, s string) string {
	if !p.on || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p paint) bold(s string) string   { return p.sgr("1", s) }
func (p paint) dim(s string) string    { return p.sgr("2", s) }
func (p paint) red(s string) string    { return p.sgr("31", s) }
func (p paint) green(s string) string  { return p.sgr("32", s) }
func (p paint) yellow(s string) string { return p.sgr("33", s) }
func (p paint) cyan(s string) string   { return p.sgr("36", s) }
