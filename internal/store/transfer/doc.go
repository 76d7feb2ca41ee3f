// Package transfer moves an installation: export, import, backup and restore. It opens the database beside the store, and ensures that
// nothing is sent twice afterwards.
package transfer
