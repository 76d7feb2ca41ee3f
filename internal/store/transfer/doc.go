// Package transfer moves an installation: export, import, backup and restore. It opens the database beside the store, and knows what
// may not be sent twice afterwards.
package transfer
