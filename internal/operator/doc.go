// Package operator shows the page of the person who runs an installation: nodes, sessions, backlog, disks, backups, and
// what the doctor found. The page is at the address of the metrics, in English. It has no scripts, and names no client.
package operator
