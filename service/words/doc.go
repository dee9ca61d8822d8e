// Package words finds runs by the words that were said in them.
//
// The texts of runs are read from a store behind their commits, cut into words, and kept in an index beside the
// store, or in its database:
//
//	journals ─► texts ─► words ─► segments on a shelf ─► runs in which all words of a question occur
//
// A text is what one event says under one kind: a title, an input, a prompt, an answer, an error or a question. Its first
// 64 KiB are indexed, as the store has them, which is without secrets. The index holds words and where they occur, and
// no texts: excerpts are read from the store.
//
// # Words
//
// A word is a sequence of letters, marks and digits of Unicode, in lower case and composed (NFC); of one over 40 bytes the beginning counts.
// Han, Hiragana and Katakana are not written with blanks: there each character is a word, and a sequence of them in a question
// fits a text in which all of them occur, in whatever order. A word of a question fits words that begin
// with it if it has three letters or more, or ends with *; a shorter one fits itself alone. All words of a question must
// occur in a run, in whatever texts of it: its own, those that it shares as a fork, the system prompts of its
// definitions, and those of the runs of its sub-workflows.
//
// # Derived
//
// The index is a cache. An error of the machine, as that too many files are open, discards nothing of it: the search fails, or goes on
// in memory. What is damaged, of another version, of another user or not sealed by this one is thrown away and
// made again. A run counts as indexed up to one of its events, named by its hash; what follows is read when it
// is asked for, or said to be missing.
//
// # Processes
//
// Segments are written once and never changed, and a reader needs no lock. Writers of a directory take turns by a lock that they have
// for one commit; in a database the first of them wins, and the others look again at what is left to do. Where the index cannot be written it is
// kept in memory.
package words
