package main

import "github.com/spf13/pflag"

func (a *app) trustFlag(flags *pflag.FlagSet) {
	flags.StringArrayVar(&a.Setup.Options.Servers, "trust-mcp", nil, "start or call this server, which the workflow declares under mcp; * is all")
	flags.StringArrayVar(&a.Trusted, "trust", nil, "trust the definition, server or provider of this CID, for this command alone (WF_TRUST=CID,…)")
}
