// Package objectstore keeps files in a folder, or in a bucket of a service that understands S3. Backups by schedule are such
// files, and so are the parts of uploaded files that are outside of the database ([Parts]).
package objectstore
