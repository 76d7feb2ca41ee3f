package main

func (b *bench) writePage(page, picture string) error { return nil }
