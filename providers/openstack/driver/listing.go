package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/millwright-dev/millwright/providers/openstack/session"
	"github.com/millwright-dev/millwright/sdk"
)

// pageSize is what Nova and Neutron give at most, unless configured otherwise: they are asked for
// more until they have no more.
const pageSize = 1000

// identified is a resource in a list.
type identified interface{ identity() string }

// listing asks for all pages of a collection, such as "servers" at the path "servers/detail".
func listing[T identified](ctx context.Context, client *gophercloud.ServiceClient, path, collection string, query url.Values) ([]T, error) {
	var all []T
	query.Set("limit", strconv.Itoa(pageSize))
	for {
		var page map[string]json.RawMessage
		_, err := client.Get(ctx, client.ServiceURL(path)+"?"+query.Encode(), &page, nil) //nolint:bodyclose // gophercloud closes it
		if query.Has("marker") && (session.IsGone(err) || session.IsBadRequest(err)) {
			return nil, sdk.NewUnknownOutcome("The list of " + collection + " changed while it was read.")
		}
		if err != nil {
			return nil, session.Explain(err)
		}
		var some []T
		if err := json.Unmarshal(page[collection], &some); err != nil {
			return nil, session.Explain(fmt.Errorf("read the list of %s: %w", collection, err))
		}
		all = append(all, some...)
		more, err := hasNext(page[collection+"_links"])
		if err != nil {
			return nil, session.Explain(fmt.Errorf("read the links of %s: %w", collection, err))
		}
		if len(some) == 0 || !more {
			return all, nil
		}
		query.Set("marker", some[len(some)-1].identity())
	}
}

// hasNext says whether the links of a page, if there are any, lead on.
func hasNext(raw json.RawMessage) (bool, error) {
	if len(raw) == 0 {
		return false, nil
	}
	var links []struct {
		Rel string `json:"rel"`
	}
	if err := json.Unmarshal(raw, &links); err != nil {
		return false, err
	}
	for _, link := range links {
		if link.Rel == "next" {
			return true, nil
		}
	}
	return false, nil
}
