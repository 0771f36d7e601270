package lifecycle

import (
	"testing"

	"github.com/millwright-dev/millwright/core/internal/histories"
)

func TestMain(m *testing.M) { histories.Main(m) }
