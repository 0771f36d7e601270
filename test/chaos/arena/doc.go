// Package arena runs campaigns of chaos on a whole Millwright of its own. Each round carries out a
// plan and puts all right again. Once everything has settled, the round is judged.
package arena
