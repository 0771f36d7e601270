package main

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/millwright-dev/millwright/test/tier/catalog"
)

// showLong prints which tests below root are left to `make test-long`, why, and which tests of
// `make test` show the same behaviour. An id that list does not have, or of which no test is left
// in `make test`, is an error.
func showLong(out io.Writer, root, list string) error {
	ids, err := readIDs(list)
	if err != nil {
		return err
	}
	tests, err := catalog.Read(root)
	if err != nil {
		return err
	}
	return tellLong(out, ids, tests)
}

func tellLong(out io.Writer, ids []string, tests []catalog.Test) error {
	kept := map[string][]string{}
	for _, one := range tests {
		for _, id := range one.IDs {
			if one.Why == "" {
				kept[id] = append(kept[id], path.Base(one.Package)+"."+one.Name)
			}
		}
	}
	_, _ = fmt.Fprint(out, "| left to `make test-long` | why | what shows it in `make test` |\n| --- | --- | --- |\n")
	var errs []error
	for _, one := range tests {
		var covered []string
		for _, id := range one.IDs {
			if !slices.Contains(ids, id) {
				errs = append(errs, fmt.Errorf("%s shows %s, which is not listed", one.Name, id))
			}
			if one.Why != "" && len(kept[id]) == 0 {
				errs = append(errs, fmt.Errorf("%s is left to make test-long, and no other test shows %s", one.Name, id))
			}
			covered = append(covered, fmt.Sprintf("%s: %s", id, strings.Join(kept[id], ", ")))
		}
		if one.Why != "" {
			_, _ = fmt.Fprintf(out, "| %s.%s | %s | %s |\n", path.Base(one.Package), one.Name, one.Why, strings.Join(covered, "; "))
		}
	}
	return errors.Join(errs...)
}
