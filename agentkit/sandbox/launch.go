package sandbox

// A launch is a Policy in the words of the launcher, sent to it over a pipe. Paths are
// absolute, and their links are resolved.
type launch struct {
	Args []string
	Dir  string
	Env  []string

	Read    []string // may be read and executed
	Write   []string // may be written too
	Tmp     string   // the private directory for temporary files
	Protect []string // read-only although inside of Write; only with Namespaces
	Sockets []string // out of reach; only with Namespaces

	ABI        int  // of Landlock
	Namespaces bool // the launcher was started in its own
	NetNS      bool // its network namespace too
	Network    bool
	Limits     Limits

	Probe bool // put up the walls and end
}
