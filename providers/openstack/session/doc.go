// Package session keeps one authenticated session for each credential, finds what a spec names, and
// says what went wrong in the contract's terms.
//
//   - A [Pool] logs in once for a credential, however many ask at once. A refused login is
//     remembered for a minute, and answered in Keystone's own words meanwhile: a wrong password is
//     tried at most once a minute.
//   - A token is renewed at half of its life, for which nobody waits.
//   - A token that a service does not take any more is renewed once, for all who wait, and the
//     request sent again: a 401 has done nothing. Nothing else is ever sent twice, by this package
//     or below it.
//   - Every request has a timeout of its own, and is read to its end within that. What got no whole
//     answer is OUTCOME_UNKNOWN.
//   - A project has at most so many reads under way, and so many machines that are created or
//     deleted: fewer where services answer slowly. Where a service asks to wait (Retry-After),
//     nobody waits: until then all calls of that project to that service are answered RATE_LIMITED
//     at once, without asking the cloud.
//   - Flavors, images, networks and groups are looked up once in ten minutes. What was not found is
//     not remembered.
//   - [Explain] turns what a cloud answered into the contract's error, in the cloud's own words.
//
// Nothing here logs headers, bodies or queries.
package session
