package notify

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"wf/protocol"
	"wf/roles"
)

// commandTime is how long a command may take.
const commandTime = time.Minute

// command runs a command for each notification, confined as the run role of a workflow with agents is, in the
// workspace of the run: agents may have written what lies there.
type command struct {
	sink  protocol.Sink
	walls roles.Walls
}

func (c command) send(ctx context.Context, m *Message, body []byte) error {
	if c.walls == nil {
		return fmt.Errorf("nothing here confines commands")
	}
	ctx, stop := context.WithTimeout(ctx, commandTime)
	defer stop()
	stdin, err := os.CreateTemp("", "wf-notification-*")
	if err != nil {
		return err
	}
	defer os.Remove(stdin.Name())
	defer stdin.Close()
	if _, err := stdin.Write(append(body, '\n')); err != nil {
		return err
	}
	if _, err := stdin.Seek(0, 0); err != nil {
		return err
	}
	var out bytes.Buffer
	kept := &prefix{to: &out, room: answerMax}
	cmd := roles.Command{Line: c.sink.Command, Workspace: m.workspace, Dir: m.workspace, Stdin: stdin, Stdout: kept, Stderr: kept, Wholly: true,
		Env: []string{"WF_NOTIFICATION_ID=" + m.ID, "PWD=" + m.workspace}}
	if m.caused.Run != "" {
		cmd.Env = append(cmd.Env, protocol.CausedByEnv+"="+m.caused.String(), "WF_RUN_ID="+string(m.Run))
	}
	cmd.Network, cmd.Hosts = c.sink.Reach()
	var met []string
	cmd.Hit = func(text string) { met = append(met, text) }
	status, err := c.walls.Run(ctx, cmd)
	if err != nil {
		return err
	}
	if status == 0 {
		return nil
	}
	if text := c.walls.Met(cmd, out.String()); text != "" {
		met = append(met, text)
	}
	return fmt.Errorf(saidExit+"%d: %s", status, brief(fmt.Sprint(out.String(), " ", met)))
}

// prefix keeps the beginning of what is written.
type prefix struct {
	to   *bytes.Buffer
	room int
}

func (p *prefix) Write(b []byte) (int, error) {
	n := min(len(b), p.room)
	p.room -= n
	p.to.Write(b[:n])
	return len(b), nil
}
