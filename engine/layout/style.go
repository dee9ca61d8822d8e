package layout

import _ "embed"

// Style is the style sheet of the pictures; every rule starts at the class wfg. Each SVG has
// it inside. A page that forbids inline styles serves it as a file of its own.
//
//go:embed style.css
var Style string
