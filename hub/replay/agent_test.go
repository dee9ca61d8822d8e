package replay_test

func agent(string) {}
