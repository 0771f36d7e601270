package contract

import (
	"errors"
	"maps"
	"regexp"
	"slices"

	driverv1alpha1 "github.com/millwright-dev/millwright/proto/gen/millwright/driver/v1alpha1"
)

// FitTags returns tags as a cloud takes them: what is too long is cut, characters that it does not
// take become "-", and of too many the first by key stay. limits hold to CheckAnswer, and may be
// nil.
func FitTags(tags map[string]string, limits *driverv1alpha1.TagLimits) map[string]string {
	if limits == nil {
		return tags
	}
	if limits.GetMaxTags() < 0 {
		return nil
	}
	others, err := tagCharacters(limits)
	if err != nil {
		return nil
	}
	fit := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if limits.GetMaxTags() > 0 && len(fit) == int(limits.GetMaxTags()) {
			break
		}
		fit[fitTag(key, others, limits.GetMaxKeyLength())] = fitTag(tags[key], others, limits.GetMaxValueLength())
	}
	return fit
}

// fitTag fits a key or a value; a length of 0 is no limit.
func fitTag(text string, others *regexp.Regexp, length int32) string {
	if others != nil {
		text = others.ReplaceAllString(text, "-")
	}
	characters := []rune(text)
	if length > 0 && len(characters) > int(length) {
		characters = characters[:length]
	}
	return string(characters)
}

// tagCharacters matches each character that the cloud does not take; nil where it takes all.
func tagCharacters(limits *driverv1alpha1.TagLimits) (*regexp.Regexp, error) {
	class := limits.GetCharacters()
	if class == "" {
		return nil, nil
	}
	others, err := regexp.Compile("[^" + class + "]")
	if err != nil {
		return nil, errors.New("is no RE2 character class")
	}
	if others.MatchString("-") {
		return nil, errors.New(`does not hold "-", by which core replaces others`)
	}
	return others, nil
}
