package chat

// Take has an App take an update in, as its feed would.
func (a *App) Take(u Update) { a.updates(updates{epoch: a.epoch, list: []Update{u}}) }
