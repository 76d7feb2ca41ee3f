package main

import (
	"fmt"
	"os"

	"puntuale/internal/price"
)

// readPrices reads the operator's price table. It returns nil if the settings name no file.
func readPrices(file string) (*price.Table, error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("the price table cannot be read: %w", err)
	}
	defer func() { _ = f.Close() }()
	t, err := price.Read(f)
	if err != nil {
		return nil, fmt.Errorf("the price table %s is not usable:\n%w", file, err)
	}
	return t, nil
}
