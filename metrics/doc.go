// Package metrics counts what a process does, and writes it as Prometheus reads it.
//
//	Registry ─► Counter, Gauge, Histogram   changed where something happens
//	         └► Func                        asked when the metrics are read
//	Registry.ServeHTTP ─► text format 0.0.4
//
// # Promised
//
// A family has at most MaxSeries series, whatever the values of its labels: a label names the values that it
// may have, or how many, and any other is counted as Other. Changing a series takes no lock that another series
// needs for longer than a look into a map. The text is sorted, so that equal values give equal bytes.
//
// The methods of a nil Counter, Gauge or Histogram do nothing: what is measured need not know whether it is.
//
// # Not here
//
// What wf counts: packages daemon and hub/server.
package metrics
