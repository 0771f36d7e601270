package poller

// pollQueue is a heap of machines by when they are due, for container/heap.
type pollQueue []*tracked

// Len is the number of machines.
func (q pollQueue) Len() int { return len(q) }

// Less says whether i is due before j.
func (q pollQueue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }

// Swap exchanges i and j.
func (q pollQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push appends x, a *tracked.
func (q *pollQueue) Push(x any) {
	m, _ := x.(*tracked)
	m.index = len(*q)
	*q = append(*q, m)
}

// Pop removes the last machine and returns it.
func (q *pollQueue) Pop() any {
	last := len(*q) - 1
	m := (*q)[last]
	(*q)[last], *q = nil, (*q)[:last]
	m.index = -1
	return m
}
