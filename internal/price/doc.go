// Package price says what the network of Official sessions takes for messages: by a table of countries and categories, which an
// operator may replace. It guesses nothing: what the table does not hold has no price.
package price
