package chat

import "wf/api"

// Take has an App take an update in, as its feed would.
func (a *App) Take(u api.Update) { a.updates(updates{epoch: a.epoch, list: []api.Update{u}}) }
