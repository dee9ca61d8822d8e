package billing

import "time"

// mailer sends an email.
type mailer interface {
	Send(to, subject, text string) error
}

// remind writes to customers whose invoice is overdue by a week or more.
func remind(m mailer, due map[string]time.Time, now time.Time) error {
	for customer, at := range due {
		if now.Sub(at) < 7*24*time.Hour {
			continue
		}
		if err := m.Send(customer, "Your invoice is overdue", "Please pay."); err != nil {
			return err
		}
	}
	return nil
}
