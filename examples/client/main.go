// Command client starts a workflow on a daemon, wf serve or wf hub, and follows it to its end.
//
//	go run ./examples/client ADDRESS WORKFLOW [NAME=VALUE...]
//
// ADDRESS is what wf serve prints: unix:PATH, http://127.0.0.1:PORT or https://HOST. A token is
// read from WF_TOKEN.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"

	"wf/api"
	"wf/hub/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) < 3 {
		log.Fatal("usage: client ADDRESS WORKFLOW [NAME=VALUE...]")
	}
	if err := start(ctx, os.Args[1], os.Args[2], os.Args[3:], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// start starts a workflow, writes what happens in it, and ends with it, or when it waits. To leave does not stop the
// run: it is the daemon's.
func start(ctx context.Context, address, workflow string, values []string, out io.Writer) error {
	server, err := client.New(address, client.Options{Token: os.Getenv("WF_TOKEN")})
	if err != nil {
		return err
	}
	defer server.Close()
	inputs := map[string]json.RawMessage{}
	for _, v := range values {
		name, value, _ := strings.Cut(v, "=")
		if inputs[name], err = json.Marshal(value); err != nil {
			return err
		}
	}
	at := client.Service{API: server, Name: address}
	run, _, err := at.Start(ctx, api.Start{Workflow: workflow, Inputs: inputs})
	if err != nil {
		return err
	}
	// It connects again when it is cut off, and goes on behind the last event. Each event is held
	// against its hash and the one before it.
	err = at.Follow(ctx, run, api.Following{Until: api.Parked}, func(u api.Update) error {
		if e := u.Entry; e != nil {
			fmt.Fprintln(out, strings.TrimSpace(fmt.Sprint(e.Seq, " ", e.Type, " ", u.Step)))
		}
		return nil
	})
	if err != nil {
		return err
	}
	ended, err := at.Run(ctx, run, api.Window{Limit: 1})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, ended.Status, string(ended.Outputs))
	return err
}
