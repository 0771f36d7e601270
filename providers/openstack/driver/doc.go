// Package driver is the driver of OpenStack: it maps the contract to Nova and Neutron. What it
// keeps between calls it can lose at the cost of time; any number of it can serve the same cloud.
//
// How it keeps the contract's promises:
//
//   - Everything is found by marks that it carries from its birth (package marks), whatever the
//     request knows of ids.
//   - The port comes first. Its MAC address follows from the machine's uid, and Neutron holds
//     (network, MAC address) unique: of all the drivers that ask for it, one gets it; who has not
//     been asked for the machine before asks for it without looking. A server is made only on that
//     port, and asked for again only once an earlier request must have been answered, for two at
//     the same time take the port from one another. Where the network is another project's, which
//     forbids choosing the address, its maker looks again, and takes it away where there is
//     another.
//   - What Nova has deleted lately it still lists (changes-since), with the description, which says
//     the machine: that keeps a create that comes late from making a second server.
//   - A create that died half-way has left ports or a floating IP. The next create goes on with
//     them, delete removes them, and lists show them.
//   - Delete goes the other way: first the server, then what it needed. What it has not made it
//     never deletes.
//
// Reads for one machine are gathered with those of others that are asked for at the same time
// (package batch), so that a hundred machines cost a few lists.
package driver
