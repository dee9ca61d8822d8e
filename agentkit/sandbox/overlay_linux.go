package sandbox

import "strings"

// mount makes the overlay. userxattr is what lets a user without root do it. A file of the user
// is copied into the layer when its time is set, and go sets the time of all that it finds in its cache: volatile spares a
// sync for each of them. A layer holds nothing that could not be made again.
func (o overlay) mount() (int, error) {
	return newMount("overlay", "lowerdir", layerName.Replace(o.Lower), "upperdir", layerName.Replace(o.Upper), "workdir", layerName.Replace(o.Work), "userxattr", "", "volatile", "")
}

// layerName writes a path as an option of overlayfs, where a colon stands between paths.
var layerName = strings.NewReplacer("\\", "\\\\", ":", "\\:")
