// Package storetest contains one suite of tests for everything that a store must do, on any database. It also opens
// databases for tests. A driver's test calls Run with a function that opens an empty database.
package storetest
