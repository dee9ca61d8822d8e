package main

func Example() {
	main()
	// Output:
	// price#1 ok in 1 attempts
	// charge#1 ok in 2 attempts
	// done {"cents":750,"receipt":"750 cents, with a key of 64 characters"}
}
