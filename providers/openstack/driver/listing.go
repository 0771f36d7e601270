package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/millwright-dev/millwright/providers/openstack/session"
)

// pageSize is what Nova and Neutron give at most, unless configured otherwise: they are asked for more until they have no more.
const pageSize = 1000

// identified is a resource in a list.
type identified interface{ identity() string }

// listing asks for all pages of a collection, such as "servers" at the path "servers/detail".
func listing[T identified](ctx context.Context, client *gophercloud.ServiceClient, path, collection string, query url.Values) ([]T, error) {
	var all []T
	query.Set("limit", strconv.Itoa(pageSize))
	for {
		var page map[string]json.RawMessage
		if _, err := client.Get(ctx, client.ServiceURL(path)+"?"+query.Encode(), &page, nil); err != nil {
			return nil, session.Explain(err)
		}
		var some []T
		if err := json.Unmarshal(page[collection], &some); err != nil {
			return nil, fmt.Errorf("read the list of %s: %w", collection, err)
		}
		all = append(all, some...)
		if len(some) == 0 || len(page[collection+"_links"]) == 0 || !hasNext(page[collection+"_links"]) {
			return all, nil
		}
		query.Set("marker", some[len(some)-1].identity())
	}
}

// hasNext says whether the links of a page lead on.
func hasNext(raw json.RawMessage) bool {
	var links []struct {
		Rel string `json:"rel"`
	}
	// Links that cannot be read end the list no more than links that are not there: both are none.
	_ = json.Unmarshal(raw, &links)
	for _, link := range links {
		if link.Rel == "next" {
			return true
		}
	}
	return false
}
