package pgstore

import "context"

// MayGoOn is nil: no database is held. A directory that was restored is another copy, which may lie beside the one that it
// was made from, so its runs wait until somebody adopts them. A database that was put back is the only one at its address, and
// those who restore it decide what may reach it; that runs were seen further on is told by their pins.
func (s *Store) MayGoOn(context.Context) error { return nil }

// Hold has nothing to do: a collection removes only blocks that an earlier one, at least MinGrace before, found unreached
// as well, and that were not stored since. So what was read while something led to it, and what is stored
// before something does, stays for MinGrace whatever becomes of that. Only one who works for longer without a commit that leads there
// would have to keep collections away.
func (s *Store) Hold(context.Context) (release func(), err error) { return func() {}, nil }
