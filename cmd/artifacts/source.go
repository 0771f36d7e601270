package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"github.com/millwright-dev/millwright/core/bootstrap"
)

// maxSums is how long a site's list of sums may be.
const maxSums = 1 << 20

// Source is where artifacts come from.
type Source struct {
	// Client makes the requests.
	Client *http.Client
	// Mirror is the URL under which all artifacts are, as MIRROR/HOST/PATH, by https. Empty: each
	// is on its own site.
	Mirror string
	// Log tells of each download.
	Log *slog.Logger
}

// Digests asks for the SHA-256 sum of each artifact and returns them by its location. With a folder
// it also downloads what the folder lacks, and the sums, so that the folder is a mirror. Nothing is
// left there under its own name unless it has its sum.
func (s Source) Digests(ctx context.Context, all []bootstrap.Artifact, folder string) (map[string]string, error) {
	digests, lists := map[string]string{}, map[string]string{}
	for _, a := range all {
		if digests[a.Location] != "" {
			continue
		}
		if _, has := lists[a.Sums]; !has {
			list, err := s.readList(ctx, a.Sums)
			if err != nil {
				return nil, err
			}
			lists[a.Sums] = list
		}
		digest := findDigest(lists[a.Sums], path.Base(a.Location))
		if !bootstrap.IsDigest(digest) {
			return nil, fmt.Errorf("%s: has no SHA-256 of %s", s.shown(a.Sums), path.Base(a.Location))
		}
		digests[a.Location] = digest
		if folder == "" {
			continue
		}
		if err := s.download(ctx, a.Location, digest, folder); err != nil {
			return nil, err
		}
		name := filepath.Join(folder, filepath.FromSlash(a.Sums))
		if err := place(name, strings.NewReader(lists[a.Sums]), ""); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return digests, nil
}

// findDigest reads a list of sums as machines do: one with a single word is that of the only file.
func findDigest(list, file string) string {
	if words := strings.Fields(list); len(words) == 1 {
		return words[0]
	}
	return bootstrap.ReadDigests(list)[file]
}

// download puts a file below the folder unless it is there.
func (s Source) download(ctx context.Context, location, digest, folder string) error {
	name := filepath.Join(folder, filepath.FromSlash(location))
	if sum, err := sumOf(name); err == nil && sum == digest {
		return nil
	}
	s.Log.Info("downloading", "url", s.shown(location), "file", name)
	body, err := s.get(ctx, location)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer func() { _ = body.Close() }()
	if err := place(name, body, digest); err != nil {
		return fmt.Errorf("%s: from %s: %w", name, s.shown(location), err)
	}
	return nil
}

// readList returns a list of sums.
func (s Source) readList(ctx context.Context, location string) (string, error) {
	body, err := s.get(ctx, location)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	list, err := io.ReadAll(io.LimitReader(body, maxSums))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", s.shown(location), err)
	}
	return string(list), nil
}

// url is where a location is.
func (s Source) url(location string) string {
	if s.Mirror == "" {
		return "https://" + location
	}
	return strings.TrimSuffix(s.Mirror, "/") + "/" + location
}

// shown is the URL without a password.
func (s Source) shown(location string) string {
	u, err := url.Parse(s.url(location))
	if err != nil {
		return location
	}
	return u.Redacted()
}

// get asks for a file by https alone. Its caller closes the body.
func (s Source) get(ctx context.Context, location string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url(location), nil)
	if err != nil {
		return nil, fmt.Errorf("the mirror's URL: %w", errors.Unwrap(err))
	}
	if request.URL.Scheme != "https" {
		return nil, fmt.Errorf("%s: sums are worth what the connection to them is: use https", s.shown(location))
	}
	client := *s.Client
	client.CheckRedirect = staySecure
	answer, err := client.Do(request)
	if err != nil {
		// It names the method and the URL.
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("%s: the server answers %s", s.shown(location), answer.Status)
	}
	return answer.Body, nil
}

// staySecure refuses a redirect from https to anything else.
func staySecure(request *http.Request, via []*http.Request) error {
	if request.URL.Scheme != "https" {
		return fmt.Errorf("redirected to %s, which is not https", request.URL.Redacted())
	}
	if len(via) >= 10 {
		return errors.New("redirected ten times")
	}
	return nil
}
