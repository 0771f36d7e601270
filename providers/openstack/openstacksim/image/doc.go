// Package image simulates Glance, OpenStack's image service: a catalog of the images that the world
// has. Nobody makes or changes one here.
package image
