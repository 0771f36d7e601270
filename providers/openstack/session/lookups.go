package session

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/millwright-dev/millwright/providers/openstack/spec"
)

// lookups is what a session remembers of what specs name.
type lookups struct {
	flavors        *memory[Flavor]
	images         *memory[Image]
	networks       *memory[network]
	externals      *memory[network]
	subnets        *memory[Subnet]
	serverGroups   *memory[thing]
	securityGroups *memory[[]thing]
	otherGroups    *memory[thing]
}

func newLookups(clock func() time.Time) lookups {
	return lookups{
		flavors: newMemory[Flavor](clock), images: newMemory[Image](clock), networks: newMemory[network](clock),
		externals: newMemory[network](clock),
		subnets:   newMemory[Subnet](clock), serverGroups: newMemory[thing](clock),
		securityGroups: newMemory[[]thing](clock), otherGroups: newMemory[thing](clock),
	}
}

// Forget drops all that was looked up. For when the cloud has answered that something is not there
// any more.
func (s *Session) Forget() {
	s.lookups.flavors.forget()
	s.lookups.images.forget()
	s.lookups.networks.forget()
	s.lookups.externals.forget()
	s.lookups.subnets.forget()
	s.lookups.serverGroups.forget()
	s.lookups.securityGroups.forget()
	s.lookups.otherGroups.forget()
}

// thing is something of which only its name and id matter.
type thing struct{ ID, Name string }

func (t thing) label() thing { return t }

// labelled is anything that has a name and an id.
type labelled interface{ label() thing }

// directory is where things of a kind are found. Either function answers with the cloud's errors.
type directory[T labelled] struct {
	// kind is what to call it, such as "image".
	kind string
	// within tells apart what has one name in several places; it begins the key under which it is
	// remembered.
	within string
	// byID returns the one of an id.
	byID func(ctx context.Context, id string) (T, error)
	// list returns at least all that a filter is for.
	list func(ctx context.Context, by spec.Filter) ([]T, error)
}

// find returns the thing that is meant. What looks like an id is one, unless there is nothing of
// it.
func (d directory[T]) find(ctx context.Context, wanted spec.Reference) (T, error) {
	if isID.MatchString(string(wanted)) {
		found, err := d.byID(ctx, string(wanted))
		if !isNotFound(err) {
			return found, err
		}
	}
	all, err := d.list(ctx, wanted.Filter())
	if err != nil {
		var none T
		return none, err
	}
	return pick(d.kind, wanted.Filter(), all)
}

// isID matches what OpenStack makes as an id. Flavors may have others.
var isID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// pick returns the one of a list that has an id, or else a name, or the only one where any will do.
func pick[T labelled](kind string, wanted spec.Filter, all []T) (T, error) {
	var none T
	for _, one := range all {
		if one.label().ID == wanted.Name {
			return one, nil
		}
	}
	matches := slices.DeleteFunc(slices.Clone(all), func(one T) bool { return wanted.Name != "" && one.label().Name != wanted.Name })
	switch len(matches) {
	case 0:
		return none, &unfound{fmt.Sprintf("There is no %s %s that the project can see.", kind, wanted)}
	case 1:
		return matches[0], nil
	}
	called := ""
	if wanted.Name != "" {
		called = "called "
	}
	return none, &unfound{fmt.Sprintf("There are %d %ss %s%s: give the id of one.", len(matches), kind, called, wanted)}
}

// unfound says in words why a lookup has found nothing. Whose field it was the one who asked knows.
type unfound struct{ words string }

func (u *unfound) Error() string { return u.words }

// errEmpty is an answer without what was asked for.
var errEmpty = errors.New("the cloud's answer is empty")

// one returns what gophercloud has read from an answer, where nothing is no error.
func one[T any](read *T, err error) (T, error) {
	if err == nil && read == nil {
		err = errEmpty
	}
	if err != nil {
		var none T
		return none, err
	}
	return *read, nil
}

// ask looks something up in a directory, through what is remembered.
func ask[T labelled](ctx context.Context, m *memory[T], d directory[T], field string, wanted spec.Reference) (T, error) {
	if wanted == "" {
		var none T
		return none, absent(field, "It names no "+d.kind+".")
	}
	found, err := m.get(ctx, d.within+string(wanted), func(ctx context.Context) (T, error) { return d.find(ctx, wanted) })
	return found, lookupError(ctx, err, "look up the "+d.kind, field)
}

// lookupError returns the contract's error for a lookup's.
func lookupError(ctx context.Context, err error, attempt, field string) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if not, is := errors.AsType[*unfound](err); is {
		return absent(field, not.words)
	}
	return fmt.Errorf("%s: %w", attempt, Explain(err))
}
