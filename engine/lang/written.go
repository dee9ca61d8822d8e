package lang

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"wf/protocol"
)

// fields are a JSON object.
type fields = map[string]any

// written is a definition as a source that Load reads: JSON, which is YAML.
func written(w *protocol.Workflow) ([]byte, error) {
	m, err := writtenFields(w)
	if err != nil {
		return nil, err
	}
	return encodeFields(m)
}

func encodeFields(m fields) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ") // a value for each line: places are found within lines
	err := enc.Encode(m)
	return out.Bytes(), err
}

// writtenFields brings a definition to the keys of the language. What is not dealt with here has the same key and
// form in both.
func writtenFields(w *protocol.Workflow) (fields, error) {
	b, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	var m fields
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		return nil, err
	}
	delete(m, "kind")
	delete(m, "v")
	m["wf"] = 1
	if inputs, ok := m["inputs"].(fields); ok {
		for _, in := range inputs {
			writeJSON(in.(fields), "default", "enum")
		}
	}
	if limits, ok := m["limits"].(fields); ok {
		writeDurations(limits)
		delete(limits, "cost_usd_micros")
		if w.Limits.Cost > 0 {
			limits["cost_usd"] = json.Number(fmt.Sprintf("%d.%06d", w.Limits.Cost/1e6, w.Limits.Cost%1e6))
		}
	}
	roles := fields{}
	for i, r := range all(m, "roles") {
		writeRole(r, &w.Roles[i])
		roles[w.Roles[i].Name] = r
	}
	m["roles"] = roles
	for _, e := range all(m, "edges") {
		delete(e, "mentions")
		if e["on_failure"] == true {
			e["on"] = "failure"
		}
		delete(e, "on_failure")
	}
	writeNamed(m, "outputs", w.Outputs)
	servers := fields{}
	for i, s := range all(m, "mcp") {
		writeServer(s, &w.MCP[i])
		servers[w.MCP[i].Name] = s
	}
	if delete(m, "mcp"); len(servers) > 0 {
		m["mcp"] = servers
	}
	for i, s := range all(m, "notify") {
		writeNetwork(s, w.Notify[i].Network, w.Notify[i].NetworkHosts)
	}
	if files, ok := m["workspace"].(fields); ok {
		writeSize(files, "max_size", w.Workspace.MaxSize)
	}
	on := fields{}
	for _, key := range []string{"schedule", "webhook"} {
		if v, ok := m[key]; ok {
			on[key] = v
			delete(m, key)
		}
	}
	if hook, ok := on["webhook"].(fields); ok {
		hook["secret"] = hook["secrets"]
		delete(hook, "secrets")
		writeNamed(hook, "with", w.Webhook.With)
	}
	if len(on) > 0 {
		m["on"] = on
	}
	return m, nil
}

// all are the objects of a list.
func all(m fields, key string) (out []fields) {
	list, _ := m[key].([]any)
	for _, x := range list {
		out = append(out, x.(fields))
	}
	return out
}

// writeRole brings a role to the keys of the language.
func writeRole(m fields, r *protocol.Role) {
	delete(m, "name")
	delete(m, "action")
	if text, ok := map[protocol.Action]string{protocol.ActPrompt: r.Prompt, protocol.ActRun: r.Run, protocol.ActAsk: r.Ask}[r.Action]; ok {
		m[string(r.Action)] = text // also where it is empty
	}
	if r.Workflow.Defined() {
		m["workflow"] = r.Workflow.String() + ".yaml"
	} else {
		delete(m, "workflow")
	}
	writeDurations(m)
	writeJSON(m, "form", "output")
	if delete(m, "params_texts"); r.Params != "" {
		m["params"] = writtenParams(r)
	}
	writeNamed(m, "with", r.With)
	writeNamed(m, "set", r.Set)
	writeNamed(m, "env", r.Env)
	writeNetwork(m, r.Network, r.NetworkHosts)
	writeTools(m, r)
	if r.Stdin != nil && r.Stdin.File == "" {
		m["stdin"] = r.Stdin.Text
	}
	if delete(m, "choices_of"); r.ChoicesOf != "" {
		m["choices"] = r.ChoicesOf
	}
	if asking, ok := m["asking"].(fields); ok {
		delete(m, "asking")
		writeAsking(asking, r.Asking)
		maps.Copy(m, asking)
	}
	if memory, ok := m["memory"].(fields); ok {
		if delete(memory, "no_recall"); r.Memory.NoRecall {
			memory["recall"] = false
		}
		writeNumber(memory, "distance", r.Memory.Distance)
		if len(memory) == 0 {
			m["memory"] = true
		}
	}
	if retry, ok := m["retry"].(fields); ok {
		writeDurations(retry)
		writeNumber(retry, "factor", r.Retry.Factor)
	}
	if delete(m, "route_all"); r.RouteAll {
		m["route"] = "all"
	}
	if kept, ok := m["artifacts"].(fields); ok {
		writeSize(kept, "max_size", r.Artifacts.MaxSize)
		writeSize(kept, "max_total", r.Artifacts.MaxTotal)
	}
	if own, ok := m["workspace"].(fields); ok {
		writeSize(own, "max_copy", r.Workspace.MaxCopy)
	}
	if cache, ok := m["caching"].(fields); ok {
		delete(m, "caching")
		writeDurations(cache)
		delete(cache, "whole")
		if m["cache"] = cache; r.Caching.Whole && len(cache) == 0 {
			m["cache"] = true
		} else if r.Caching.Whole {
			// what an agent sees is not written
		} else if len(r.Caching.Inputs) == 0 {
			cache["inputs"] = []any{}
		}
	}
}

// writeAsking brings the time and the people of a question to the keys of its role.
func writeAsking(m fields, a *protocol.Asking) {
	writeDurations(m)
	delete(m, "escalate")
	switch {
	case len(a.Escalate) == 0:
	case len(a.Escalate[0]) == 0: // the same people again
		m["on_timeout"] = escalateOnTimeout
	default:
		then := fields{"escalate": a.Escalate}
		if a.OnTimeout != "" {
			then["then"] = a.OnTimeout
		}
		m["on_timeout"] = then
	}
}

// writeTools joins the tools with what is said of approving them.
func writeTools(m fields, r *protocol.Role) {
	delete(m, "approvals")
	tools, _ := m["tools"].([]any)
	for i, name := range r.Tools {
		for _, a := range r.Approvals {
			if a.Name == name {
				tools[i] = fields{name: a.Value}
			}
		}
	}
}

// writeServer brings an MCP server to the keys of the language.
func writeServer(m fields, s *protocol.MCPServer) {
	delete(m, "name")
	delete(m, "env")
	delete(m, "headers")
	writeNetwork(m, s.Network, s.NetworkHosts)
	env, headers := fields{}, fields{}
	for _, v := range s.Env {
		if env[v.Name] = v.Value; v.Secret != "" {
			env[v.Name] = "${{ secrets." + v.Secret + " }}"
		}
	}
	for _, v := range s.Headers {
		headers[v.Name] = v.Secret
	}
	if len(env) > 0 {
		m["env"] = env
	}
	if len(headers) > 0 {
		m["headers_env"] = headers
	}
}

// writeNetwork joins the word and the endpoints of a network.
func writeNetwork(m fields, word string, hosts []string) {
	delete(m, "network_hosts")
	if len(hosts) == 0 {
		return
	}
	if word != "" {
		hosts = append([]string{word}, hosts...)
	}
	m["network"] = hosts
}

// writeNamed makes names and their values an object; with none of them the key is left out, as it was.
func writeNamed(m fields, key string, list []protocol.NamedTemplate) {
	if len(list) == 0 {
		return
	}
	out := fields{}
	for _, x := range list {
		if out[x.Name] = x.Value; x.JSON != "" {
			out[x.Name] = json.RawMessage(x.JSON)
		}
	}
	m[key] = out
}

// writeJSON makes texts that hold JSON the values that they are.
func writeJSON(m fields, keys ...string) {
	for _, key := range keys {
		if text, ok := m[key].(string); ok && text != "" {
			m[key] = json.RawMessage(text)
		}
	}
}

// writtenParams are the params of a role with their decimals as numbers, where the number reads as the same text again.
func writtenParams(r *protocol.Role) any {
	var v any
	d := json.NewDecoder(strings.NewReader(r.Params))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return json.RawMessage(r.Params) // what is wrong with it is told where it is read again
	}
	return protocol.MapParams(v, func(at string, v any) any {
		text, ok := v.(string)
		if !ok || !protocol.DecimalParam(text, at, r.ParamsTexts) {
			return v
		}
		if f, err := strconv.ParseFloat(text, 64); err != nil || strconv.FormatFloat(f, 'f', -1, 64) != text {
			return v
		}
		return json.Number(text)
	})
}

// writeDurations brings times, which are microseconds, to the form of the language.
func writeDurations(m fields) {
	for key, v := range maps.Clone(m) {
		name, ok := strings.CutSuffix(key, "_us")
		if !ok {
			continue
		}
		delete(m, key)
		switch v := v.(type) {
		case json.Number:
			m[name] = durationText(v)
		case []any:
			for i := range v {
				v[i] = durationText(v[i].(json.Number))
			}
			m[name] = v
		}
	}
}

func durationText(us json.Number) string {
	n, _ := us.Int64() // written by json.Marshal of an int64
	return (time.Duration(n) * time.Microsecond).String()
}

func writeNumber(m fields, key, decimal string) {
	if decimal != "" {
		m[key] = json.Number(decimal)
	}
}

func writeSize(m fields, key string, bytes int64) {
	if bytes == 0 {
		return
	}
	unit, name := int64(1<<10), "KB"
	for _, larger := range []string{"MB", "GB"} {
		if bytes%(unit<<10) != 0 {
			break
		}
		unit, name = unit<<10, larger
	}
	m[key] = fmt.Sprintf("%d%s", bytes/unit, name)
}
