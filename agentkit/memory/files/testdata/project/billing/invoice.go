// Package billing writes invoices.
package billing

// Invoice is what a customer owes.
type Invoice struct {
	Number string
	Lines  []Line
	Tax    int // percent
}

// Line is one position of an invoice.
type Line struct {
	Text  string
	Count int
	Price Cents
}

// Total is the sum of the lines, with tax.
func (i Invoice) Total() Cents {
	var sum Cents
	for _, l := range i.Lines {
		sum += l.Price * Cents(l.Count)
	}
	return sum + percent(sum, i.Tax)
}
