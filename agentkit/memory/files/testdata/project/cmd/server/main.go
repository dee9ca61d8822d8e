// Command server runs the ledger.
package main

import (
	"flag"
	"fmt"
	"os"
)

// options are what the command line says.
type options struct {
	address string
	verbose bool
}

// parse reads the flags of the command line.
func parse(args []string) (options, error) {
	var o options
	set := flag.NewFlagSet("server", flag.ContinueOnError)
	set.StringVar(&o.address, "address", ":8080", "where to listen")
	set.BoolVar(&o.verbose, "verbose", false, "log every request")
	err := set.Parse(args)
	return o, err
}

func main() {
	o, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	fmt.Println("listening on", o.address)
}
