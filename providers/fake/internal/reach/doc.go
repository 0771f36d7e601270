// Package reach connects the commands of this module to a cloud.
package reach
