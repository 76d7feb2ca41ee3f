// Package price computes what the network of Official sessions bills for messages. It uses a table of prices by country
// and category, which an operator may replace. It does not guess: a message that is not in the table has no price.
package price
