package metrics

import (
	"runtime"
	"runtime/debug"
	"time"
)

// started is when the process began, as far as Go tells.
var started = time.Now()

// Process registers what is known of any process: its start, time of processors, memory, open files, goroutines.
// What the system does not tell is left out.
func (r *Registry) Process(version string) {
	r.GaugeFunc("wf_build_info", "1, with the version of wf and of Go that built it.", func(emit func(float64, ...string)) {
		emit(1, version, runtime.Version())
	}, Label{Name: "version"}, Label{Name: "goversion"})
	r.GaugeFunc("process_start_time_seconds", "When the process started, in seconds since 1970.", func(emit func(float64, ...string)) {
		emit(float64(started.UnixMilli()) / 1e3)
	})
	r.GaugeFunc("go_goroutines", "Goroutines that exist.", func(emit func(float64, ...string)) { emit(float64(runtime.NumGoroutine())) })
	r.GaugeFunc("go_memory_bytes", "Memory that the Go runtime has from the system.", func(emit func(float64, ...string)) {
		emit(float64(memory().Sys))
	})
	r.GaugeFunc("go_heap_bytes", "Memory that objects take, in use or not yet collected.", func(emit func(float64, ...string)) {
		emit(float64(memory().HeapAlloc))
	})
	r.GaugeFunc("go_memory_limit_bytes", "GOMEMLIMIT, where there is one.", func(emit func(float64, ...string)) {
		if limit := debug.SetMemoryLimit(-1); limit < 1<<62 {
			emit(float64(limit))
		}
	})
	r.system()
}

// memory is what the runtime tells of its memory.
func memory() (m runtime.MemStats) {
	runtime.ReadMemStats(&m)
	return m
}
