// Package driver is the driver of OpenStack: it maps the contract to Nova, Neutron and Cinder.
// What it keeps between calls it can lose at the cost of time; any number of it can serve the same
// cloud.
//
// How it keeps the contract's promises:
//
//   - Everything is found by marks that it carries from its birth (package ownership), whatever the
//     request knows of ids.
//   - The port comes first. Its MAC address follows from the machine's uid, and Neutron holds
//     (network, MAC address) unique: of all the drivers that ask for it, one gets it. A server is
//     made only on that port. It is asked for again only once an earlier request must have been
//     answered: two requests at the same time take the port from one another. Where the network is
//     another project's, nobody may choose the address. Then who has made a port looks again, and
//     deletes it where there is another.
//   - Nova still lists what it has deleted recently (changes-since), with the description, which
//     names the machine. That keeps a create that comes late from making a second server.
//   - Volumes are made before the server, and no call waits for them. Cinder holds nothing of them
//     unique: one that was just made is used only after another look, and of two the older stays.
//   - A server that never had a host is no VM yet. Where Nova finds no room for it, or a quota used
//     up, it is a create that was refused: the next one takes it back and says so.
//   - A create that died half-way has left ports, a floating IP or volumes. The next create goes on
//     with them, delete removes them, and lists show them.
//   - Delete goes the other way: first the server, then what it needed, the ports last. What it has
//     not made it never deletes.
//
// Reads for machines that are asked for at the same time go together (package batch). So a hundred
// machines cost a few lists.
//
// creation.lookAndMake in create.go is the list of what OpenStack is asked to make a machine, in
// order. Resources have a file each: servers.go, ports.go, floatingips.go, volumes.go. What a spec
// names is looked up by package session.
package driver
