package modules

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// git works on one folder. The commits that it makes depend on what is in them alone.
type git struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one call of Publish
	folder string
	at     time.Time
}

func (g git) run(arguments ...string) (string, error) {
	command := exec.CommandContext(g.ctx, "git", arguments...)
	command.Dir = g.folder
	when := fmt.Sprintf("%d +0000", g.at.Unix())
	command.Env = append(os.Environ(),
		"GIT_AUTHOR_NAME=Millwright", "GIT_AUTHOR_EMAIL=release@millwright.invalid", "GIT_AUTHOR_DATE="+when,
		"GIT_COMMITTER_NAME=Millwright", "GIT_COMMITTER_EMAIL=release@millwright.invalid", "GIT_COMMITTER_DATE="+when)
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(arguments, " "), err, said.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// commit commits all there is to commit.
func (g git) commit(subject string) error {
	if changes, err := g.run("status", "--porcelain"); err != nil || changes == "" {
		return err
	}
	_, err := g.run("commit", "--quiet", "--all", "--message", subject)
	return err
}
