// Package price says what the network of Official sessions bills for messages, by a table of countries and categories, which an operator
// may replace. It guesses nothing: a message that is not in the table has no price.
package price
