package auth

// Role is what a user is.
type Role string

// The roles of users.
const (
	Clerk   Role = "clerk"
	Manager Role = "manager"
)

// may lists which roles are allowed which action on an invoice.
var may = map[string][]Role{
	"read":   {Clerk, Manager},
	"write":  {Clerk, Manager},
	"delete": {Manager},
}

// Allowed reports whether a user of a role may do that.
func Allowed(r Role, action string) bool {
	for _, x := range may[action] {
		if x == r {
			return true
		}
	}
	return false
}
