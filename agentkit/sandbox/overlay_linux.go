package sandbox

import "strings"

// mount makes the overlay. The options are those with which a user who is not root may do it.
func (o overlay) mount() (int, error) {
	return newMount("overlay", "lowerdir", layerName.Replace(o.Lower), "upperdir", layerName.Replace(o.Upper), "workdir", layerName.Replace(o.Work), "userxattr", "")
}

// layerName writes a path as an option of overlayfs, where a colon stands between paths.
var layerName = strings.NewReplacer("\\", "\\\\", ":", "\\:")
