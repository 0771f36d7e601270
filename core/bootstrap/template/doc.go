// Package template fills in files and units that an operator writes as templates. It is pure.
//
// document.go is where to begin: Parse reads a document of files and units, Render fills them in.
// Each content is a template of its own. text/template/parse reads it (actions.go). evaluate.go
// evaluates it, with functions.go and values.go: over plain values, as text/template would. What an
// action prints is not written into the text: output.go keeps texts and values apart. A check of
// the format says whether each value stands where one may (formats.go, shell.go, yaml.go). It looks
// at an output with markers of letters and digits instead of values. So no value can leave its
// place.
package template
