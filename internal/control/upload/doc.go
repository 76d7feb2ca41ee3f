// Package upload reads uploaded lists of recipients and contacts for package control. It bounds how many lists one
// server reads at the same time, and converts the errors of a list's file into faults.
package upload
