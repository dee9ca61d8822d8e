// Package yaml reads one YAML document into nodes that know where they were written.
//
// No other package of the engine imports the YAML library. Parse refuses what a definition never needs:
// more than Limits.Bytes, deeper than Limits.Depth, more nodes than Limits.Nodes once every
// alias is written out, an alias inside itself, a key given twice, tabs as indentation, bytes
// that are not UTF-8, a second document, an unknown tag (!secret x), a number that readers of YAML take for different
// values (0644, 1_000, 1:30). All repeated keys, tags and numbers are reported at once; an error of syntax ends the
// reading.
//
// # Words
//
// Strings stay strings: on, off, yes and no are text, only true and false are booleans. Numbers are those of YAML
// 1.2. What another reader takes for another number, or for one at all, is refused, and never guessed.
// Merge keys (<<) are written out; explicit keys win.
package yaml
