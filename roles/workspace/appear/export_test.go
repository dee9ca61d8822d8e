package appear

// Forget begins anew with all workspaces.
func Forget() {
	watches.Lock()
	defer watches.Unlock()
	watches.all = nil
}

// Settle has a watch take all that it knows for older than the clock of a file system is coarse.
func Settle(w *Watch) {
	for queue := []*dir{w.top}; len(queue) > 0; queue = queue[1:] {
		queue[0].settled = true
		queue = append(queue, queue[0].kids...)
	}
}

// Bound has a watch know at most some directories, and read at most some names in one look.
func Bound(w *Watch, dirs, entries int) { w.bounds = bounds{dirs, entries} }

// Items are what a watch knows, as kind and path.
func Items(w *Watch) []string {
	var out []string
	w.items(func(path string, i *item) { out = append(out, string(i.kind)+" "+path) })
	return out
}

// Known is how many directories a watch counts, and how many it has.
func Known(w *Watch) (counted, has int) { return w.dirs, w.top.size() }
