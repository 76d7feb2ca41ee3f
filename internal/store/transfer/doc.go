// Package transfer moves an installation: export, import, backup and restore. It opens the database without a store. It
// also makes sure that no message is sent twice because of a move.
package transfer
