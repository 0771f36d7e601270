package forecast

import (
	"os"
	"testing"

	"github.com/millwright-dev/millwright/core/internal/histories"
)

func TestMain(m *testing.M) { os.Exit(histories.Run(m)) }
