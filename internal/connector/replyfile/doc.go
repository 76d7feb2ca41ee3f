// Package replyfile fetches the files of replies. A whole file is on disk and checked before its first byte is shown.
// The files of linked numbers are encrypted. Each message contains its file's key, so any node can open the file.
package replyfile
