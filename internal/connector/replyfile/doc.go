// Package replyfile fetches the files that come with replies. A file is on disk, whole and checked, before the first byte of it
// is shown. The files of linked numbers are encrypted. The message holds their keys, so any node can open them.
package replyfile
