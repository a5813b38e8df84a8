/* SPDX-License-Identifier: MIT
 *
 * Finding the site of a host name (RFC 9110 section 7.2). Exact names come first, then the
 * longest "*.name" that covers the host, then the site without names.
 */
#pragma once

#include "base/span.h"

#include <stddef.h>

struct session_site;
struct session_hosts;

/* Builds the index. Borrows the sites for its life. NULL: out of memory. */
struct session_hosts *session_hosts_new(const struct session_site *sites, size_t count);
void session_hosts_free(struct session_hosts *hosts);

/* The configured name that matches a host: an exact name, "*.name" without its star, or "*" for
 * the site without names. It is valid as long as the sites. The host must have a site. */
struct span session_hosts_rule(const struct session_hosts *hosts, struct span host);

/* The site of a host, or NULL. `host` may be in any case, and has no port. Any thread. */
const struct session_site *session_hosts_find(const struct session_hosts *hosts, struct span host);
