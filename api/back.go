package api

import "wf/protocol"

// A Turn is a turn of a person in the conversation of a run.
type Turn struct {
	Step     string       // the visit that was answered
	Said     protocol.Seq // the answer
	At       protocol.Seq // the newest event that a run without the turn shares
	Messages int          // how many of the messages that waited at At were the answer
	Text     string       // what was said, as it can be written again
	Time     Time
	Ended    []string // visits that ended behind it, before the next turn
	Part     bool     // a sub-workflow asked: only that run can leave the turn out

	Tree   CID    // the files before a visit behind it acted; "" where none has acted
	Failed string // why the files of that time are not known, "" where they are
}

// Back says how a conversation goes back. The zero Back takes the last turn back.
type Back struct {
	To    string             // the visit whose answer is taken back, with all behind it; or one of an agent, behind which all is
	Forth bool               // the last Back is taken back instead
	Force bool               // files are replaced too that nothing has recorded, and kept
	Each  func(done, of int) // called as files are changed; nil for nothing
}

// WentBack is what became of a Back.
type WentBack struct {
	Run   protocol.RunID // in which the conversation goes on; "" where nothing was changed: Files has why
	Step  string         // whose answer was taken back, "" for none
	Text  string         // what was said there
	Files FilesRestored
	Left  string // why the files stay as they are, "" where they went too
}

// Settled is what was found of a conversation before a turn of it.
type Settled struct {
	Run   protocol.RunID // in which it goes on
	Mark  CID            // of the newest going back in its workspace
	Files *FilesRestored // what was ended that another process had begun; nil for nothing
}
