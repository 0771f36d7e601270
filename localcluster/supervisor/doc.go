// Package supervisor runs child processes that never outlive the process that started them.
//
// Three lines of defence, each for what the one before cannot cover:
//
//  1. [Supervisor.Close] stops the children in reverse order of their start: the way out after
//     Ctrl-C or SIGTERM.
//  2. On Linux the kernel kills each child when its parent dies, kill -9 included
//     (PR_SET_PDEATHSIG). It really watches the parent's thread, so that one locked thread, alive
//     as long as the Supervisor, does all the forking.
//  3. Each child is noted in the directory, with what proves its identity. The next Supervisor of
//     the same directory ends those that are still there. What it cannot prove to be its own, it
//     leaves alone.
//
// A directory belongs to one Supervisor at a time: a second one fails instead of killing the first
// one's children.
package supervisor
