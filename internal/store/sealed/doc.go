// Package sealed names every column that contains sealed data, and seals their data again when the installation's data
// key is replaced.
package sealed
