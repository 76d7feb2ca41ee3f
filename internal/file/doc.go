// Package file finds out the type of an uploaded file from its content, and refuses what no network takes. From images it
// removes everything that a picture does not need, such as the place where it was taken. Only [Small] decodes images; no
// archive is unpacked.
package file
