// Command client starts a workflow on a daemon, wf serve or wf hub, and follows it to its end.
//
//	go run ./examples/client ADDRESS WORKFLOW [NAME=VALUE...]
//
// ADDRESS is what wf serve prints: unix:PATH, http://127.0.0.1:PORT or https://HOST. A token is
// read from WF_TOKEN.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"

	"wf/api"
	"wf/hub/client"
	"wf/protocol"
)

// errEnded ends following a run.
var errEnded = errors.New("the run came to its end")

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

// start starts a workflow, writes what happens in it, and ends with it. To leave does not stop the
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
	run, _, err := server.Submit(ctx, client.Start{Workflow: workflow, Inputs: inputs}, nil)
	if err != nil {
		return err
	}
	header := http.Header{}
	server.Authorize(header)
	// It connects again when it is cut off, and goes on behind the last event. Each event is held
	// against its hash and the one before it.
	follow := client.Replay{URL: server.Base() + "/v1/replay", HTTP: server.HTTP(), Header: header, Codec: protocol.CBORFrames, Run: run, Live: true}
	err = follow.Follow(ctx, client.Consumer{Event: func(e client.Event) error {
		fmt.Fprintln(out, strings.TrimSpace(fmt.Sprint(e.Seq, " ", e.Type, " ", e.StepName())))
		if e.Type == protocol.EvDone || e.Type == protocol.EvSuspended {
			return errEnded
		}
		return nil
	}})
	if !errors.Is(err, errEnded) {
		return cmp.Or(err, errors.New("the server ended the stream before the run"))
	}
	answer, err := server.Run(ctx, run)
	if err != nil {
		return err
	}
	var ended api.Run
	if err := json.Unmarshal(answer, &ended); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, ended.Status, string(ended.Outputs))
	return err
}
