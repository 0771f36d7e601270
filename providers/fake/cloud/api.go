package cloud

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	fakecloudv1alpha1 "github.com/millwright-dev/millwright/providers/fake/gen/millwright/fakecloud/v1alpha1"
)

// The cloud's own operations, as the ledger and faults name them.
const (
	opCreateNIC = "CreateNIC"
	opListNICs  = "ListNICs"
	opDeleteNIC = "DeleteNIC"
	opCreateVM  = "CreateVM"
	opListVMs   = "ListVMs"
	opDeleteVM  = "DeleteVM"
	opSetTags   = "SetTags"
	opConsole   = "GetVMConsole"
)

var (
	operations       = []string{opCreateNIC, opListNICs, opDeleteNIC, opCreateVM, opListVMs, opDeleteVM, opSetTags, opConsole}
	createOperations = []string{opCreateNIC, opCreateVM}
	deleteOperations = []string{opDeleteVM, opDeleteNIC}
)

// api serves the cloud's own API.
type api struct {
	fakecloudv1alpha1.UnimplementedCloudServiceServer
	cloud *Cloud
}

// CreateNIC implements the service.
func (a *api) CreateNIC(ctx context.Context, r *fakecloudv1alpha1.CreateNICRequest) (*fakecloudv1alpha1.CreateNICResponse, error) {
	answer := &fakecloudv1alpha1.CreateNICResponse{}
	account, err := a.cloud.do(ctx, request{operation: opCreateNIC, key: r.GetKey(), tags: r.GetTags()}, func(t *turn) error {
		n, err := a.cloud.createNIC(t, r)
		if err == nil {
			answer.Nic, t.Resource = n.wire(), n.ID
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	answer.Account = account
	return answer, nil
}

// ListNICs implements the service.
func (a *api) ListNICs(ctx context.Context, r *fakecloudv1alpha1.ListNICsRequest) (*fakecloudv1alpha1.ListNICsResponse, error) {
	answer := &fakecloudv1alpha1.ListNICsResponse{}
	account, err := a.cloud.do(ctx, request{operation: opListNICs, key: r.GetKey(), tags: r.GetTags()}, func(t *turn) error {
		q, err := newQuery(t, r, a.cloud.options.Page)
		if err != nil {
			return err
		}
		nics, more := a.cloud.store.nics.list(q)
		for _, n := range nics {
			answer.Nics = append(answer.Nics, n.wire())
		}
		if more {
			answer.NextPageToken = pageToken(nics[len(nics)-1].Seq)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	answer.Account = account
	return answer, nil
}

// DeleteNIC implements the service.
func (a *api) DeleteNIC(ctx context.Context, r *fakecloudv1alpha1.DeleteNICRequest) (*fakecloudv1alpha1.DeleteNICResponse, error) {
	account, err := a.cloud.do(ctx, request{operation: opDeleteNIC, key: r.GetKey(), resource: r.GetId()}, func(t *turn) error {
		return a.cloud.deleteNIC(t, r.GetId())
	})
	if err != nil {
		return nil, err
	}
	return &fakecloudv1alpha1.DeleteNICResponse{Account: account}, nil
}

// CreateVM implements the service.
func (a *api) CreateVM(ctx context.Context, r *fakecloudv1alpha1.CreateVMRequest) (*fakecloudv1alpha1.CreateVMResponse, error) {
	answer := &fakecloudv1alpha1.CreateVMResponse{}
	account, err := a.cloud.do(ctx, request{operation: opCreateVM, key: r.GetKey(), tags: r.GetTags()}, func(t *turn) error {
		v, err := a.cloud.createVM(t, r)
		if err == nil {
			answer.Vm, t.Resource = v.wire(), v.ID
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	answer.Account = account
	return answer, nil
}

// ListVMs implements the service.
func (a *api) ListVMs(ctx context.Context, r *fakecloudv1alpha1.ListVMsRequest) (*fakecloudv1alpha1.ListVMsResponse, error) {
	answer := &fakecloudv1alpha1.ListVMsResponse{}
	account, err := a.cloud.do(ctx, request{operation: opListVMs, key: r.GetKey(), tags: r.GetTags()}, func(t *turn) error {
		q, err := newQuery(t, r, a.cloud.options.Page)
		if err != nil {
			return err
		}
		vms, more := a.cloud.store.alive.list(q)
		for _, v := range vms {
			answer.Vms = append(answer.Vms, v.wire())
		}
		if more {
			answer.NextPageToken = pageToken(vms[len(vms)-1].Seq)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	answer.Account = account
	return answer, nil
}

// DeleteVM implements the service.
func (a *api) DeleteVM(ctx context.Context, r *fakecloudv1alpha1.DeleteVMRequest) (*fakecloudv1alpha1.DeleteVMResponse, error) {
	answer := &fakecloudv1alpha1.DeleteVMResponse{}
	account, err := a.cloud.do(ctx, request{operation: opDeleteVM, key: r.GetKey(), resource: r.GetId()}, func(t *turn) error {
		v, err := a.cloud.deleteVM(t, r.GetId())
		if err == nil {
			answer.Vm = v.wire()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	answer.Account = account
	return answer, nil
}

// SetTags implements the service.
func (a *api) SetTags(ctx context.Context, r *fakecloudv1alpha1.SetTagsRequest) (*fakecloudv1alpha1.SetTagsResponse, error) {
	account, err := a.cloud.do(ctx, request{operation: opSetTags, key: r.GetKey(), tags: r.GetTags(), resource: r.GetId()}, func(t *turn) error {
		return a.cloud.setTags(t, r)
	})
	if err != nil {
		return nil, err
	}
	return &fakecloudv1alpha1.SetTagsResponse{Account: account}, nil
}

// GetVMConsole implements the service.
func (a *api) GetVMConsole(ctx context.Context, r *fakecloudv1alpha1.GetVMConsoleRequest) (*fakecloudv1alpha1.GetVMConsoleResponse, error) {
	answer := &fakecloudv1alpha1.GetVMConsoleResponse{}
	account, err := a.cloud.do(ctx, request{operation: opConsole, key: r.GetKey(), resource: r.GetId()}, func(t *turn) error {
		v, ok := a.cloud.store.alive.find(t.account, r.GetId())
		if !ok {
			return noResource(kindVM, r.GetId())
		}
		answer.Output = []byte(v.console())
		return nil
	})
	if err != nil {
		return nil, err
	}
	answer.Account = account
	return answer, nil
}

// paged is what both list requests have.
type paged interface {
	GetTags() map[string]string
	GetPageSize() int32
	GetPageToken() string
}

func newQuery(t *turn, r paged, maxPage int) (query, error) {
	q := query{account: t.account, tags: r.GetTags(), limit: maxPage, until: t.Horizon()}
	if n := int(r.GetPageSize()); n > 0 && n < maxPage {
		q.limit = n
	}
	if token := r.GetPageToken(); token != "" {
		digits, ok := strings.CutPrefix(token, "after-")
		after, err := strconv.ParseInt(digits, 10, 64)
		if !ok || err != nil {
			return query{}, refuse(fakecloudv1alpha1.ErrorCode_ERROR_CODE_PAGE_TOKEN_UNKNOWN, "page_token", "The page token is unknown.")
		}
		q.after = after
	}
	return q, nil
}

func pageToken(seq int64) string { return fmt.Sprintf("after-%d", seq) }
