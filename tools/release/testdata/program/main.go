// Command program is what the tests make images of.
package main

import "github.com/spf13/pflag"

func main() { pflag.Parse() }
