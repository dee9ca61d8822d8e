package billing

import "fmt"

// Cents is money. There are no floats: they do not add up.
type Cents int64

// percent takes a share, rounded half up to whole cents.
func percent(c Cents, p int) Cents {
	return (c*Cents(p) + 50) / 100
}

// String writes cents as euros.
func (c Cents) String() string { return fmt.Sprintf("%d.%02d €", c/100, c%100) }
