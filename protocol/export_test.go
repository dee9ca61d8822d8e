package protocol

// WalkEvent and WalkBatch read only the forms that are written; other forms are decoded by reflection.
var (
	WalkEvent = walkEvent
	WalkBatch = walkBatch
)
