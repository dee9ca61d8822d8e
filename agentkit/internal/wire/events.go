package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ErrCut is a stream that ended before its own end.
var ErrCut = errors.New("the stream was cut off")

// Events reads server-sent events of any length and hands them on until each says that the
// stream is done. A stream that ends before is an error wrapping ErrCut.
//
// A line "error: …", which older llama-servers send, is an event named error.
func Events(r io.Reader, each func(name string, data []byte) (done bool, err error)) error {
	lines := bufio.NewReader(r)
	var name string
	var data bytes.Buffer
	flush := func() (bool, error) {
		if data.Len() == 0 {
			name = ""
			return false, nil
		}
		done, err := each(name, data.Bytes())
		name = ""
		data.Reset()
		return done, err
	}
	for {
		line, err := lines.ReadBytes('\n')
		ended := err != nil
		if ended && !errors.Is(err, io.EOF) {
			return fmt.Errorf("the stream broke off: %w", err)
		}
		line = bytes.TrimRight(line, "\r\n")
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			name = string(value)
		case "data":
			if data.Len() > 0 {
				data.WriteByte('\n')
			}
			data.Write(value)
		case "error":
			_, err := each("error", value)
			return err
		}
		if len(line) == 0 || ended {
			if done, err := flush(); done || err != nil {
				return err
			}
		}
		if ended {
			return ErrCut
		}
	}
}

// Ended judges the end of a stream by the error of Events. finished says that the reason for which
// the model stopped has come; reason and last are how the wire calls it and its last event. Without
// the last event alone the answer is complete.
func Ended(err error, finished bool, reason, last string) error {
	switch {
	case errors.Is(err, ErrCut) && finished:
		return nil
	case errors.Is(err, ErrCut):
		return fmt.Errorf("%w: it ended without %s and %s", err, reason, last)
	case err == nil && !finished:
		return fmt.Errorf("%w: it ended without %s", ErrCut, reason)
	}
	return err
}
