/* SPDX-License-Identifier: MIT
 *
 * Which site answers for a host name (RFC 9110 section 7.2): exact names first,
 * then the longest "*.name" that stands above it, then the site without names.
 */
#pragma once

#include "base/span.h"

#include <stddef.h>

struct session_site;
struct session_hosts;

/* Indexes the sites, which are borrowed for its life. NULL without memory. */
struct session_hosts *session_hosts_new(const struct session_site *sites, size_t count);
void session_hosts_free(struct session_hosts *hosts);

/* The name that decides for a host which has a site: its own, "*.name" without the star, or "*" for
 * the site without names. Lives as long as the sites. */
struct span session_hosts_rule(const struct session_hosts *hosts, struct span host);

/* The site for a host (any case, without port), or NULL when none answers. Any thread. */
const struct session_site *session_hosts_find(const struct session_hosts *hosts, struct span host);
