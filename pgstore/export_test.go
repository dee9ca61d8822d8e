package pgstore

// TakeFree is the statement of a look for runs that are due.
var TakeFree = takeFree

// Elsewhere has the store take for granted that it followed another history of the database until now.
func (s *Store) Elsewhere() { s.follows.history = "another" }
