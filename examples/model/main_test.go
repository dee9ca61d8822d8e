package main

func Example() {
	main()
	// Output:
	// clerk#1 step_started
	// clerk#1 prompt
	// clerk#1 tool_call
	// clerk#1 usage
	// clerk#1 tool_result
	// clerk#1 text
	// clerk#1 usage
	// clerk#1 step_completed
	// done {"pieces":42}
}
