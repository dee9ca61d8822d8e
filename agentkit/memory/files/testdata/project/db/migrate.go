// Package db reaches Postgres.
package db

import (
	"database/sql"
	"fmt"
)

// migrations bring the schema of the database up to date, in order.
var migrations = []string{
	`create table invoices (number text primary key, total bigint)`,
	`alter table invoices add column paid boolean default false`,
}

// Open connects to the database and runs the migrations that are missing.
func Open(address string, done int) (*sql.DB, error) {
	db, err := sql.Open("postgres", address)
	if err != nil {
		return nil, err
	}
	for i, m := range migrations[done:] {
		if _, err := db.Exec(m); err != nil {
			return nil, fmt.Errorf("migration %d: %w", done+i, err)
		}
	}
	return db, nil
}
