// Package clouds says what a campaign of chaos has to know of each test cloud: what it is told of
// it stands here, and nowhere else.
package clouds
