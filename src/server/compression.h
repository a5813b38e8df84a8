/* SPDX-License-Identifier: MIT
 *
 * Whether a site of a configuration compresses, and why not. The workers, `weir check` and `weir
 * trace` decide it here. The compressor of a worker also reads large files for their entity tags.
 */
#pragma once

#include "base/check.h"
#include "config/config.h"

struct model;
struct server_resources;

/* The reasons, in the order in which they are tested. */
enum server_compression {
    SERVER_COMPRESSION_ON,
    SERVER_COMPRESSION_OFF,    /* `compress = off` */
    SERVER_COMPRESSION_NO_CPU, /* `compress-cpu = 0` */
    SERVER_COMPRESSION_MODEL,  /* no cache outlives a connection, so a variant would be of no use */
    SERVER_COMPRESSION_NO_CACHE, /* `cache-size = 0` */
    SERVER_COMPRESSION_HEADER    /* the site says `no-transform` (RFC 9111 section 5.2.2.6) */
};
enum server_compression server_compression_of(const struct config *config,
                                              const struct config_site *site,
                                              const struct model *model);

/* The rest of a sentence that begins with "no, because". Static. */
const char *server_compression_reason(enum server_compression reason);

/* The codings that this build has, or lacks: "br, zstd, gzip". */
enum { SERVER_COMPRESSION_CODINGS_MAX = 32 };
void server_compression_codings(char out[SERVER_COMPRESSION_CODINGS_MAX], bool lacking);

/* Describes in a sentence what the sites do. */
enum { SERVER_COMPRESSION_TEXT_MAX = 256 };
void server_compression_describe(const struct config *config, const struct model *model,
                                 char out[SERVER_COMPRESSION_TEXT_MAX]);

/* Whether the compressor reads large files for their entity tags, where `etag` of a site wants
 * that. It needs a cache that outlives a connection, and CPU time (`compress-cpu`). */
bool server_compression_makes_tags(const struct config *config, const struct model *model);

/* Sets which variants and tags the opened sites offer. With `run` it makes their compressor, too.
 * Call it before any thread. 0 or -ENOMEM. */
MUST_USE int server_compression_begin(struct server_resources *resources,
                                      const struct config *config, const struct model *model,
                                      bool run);

/* Ends the compressor, if there is one. It waits at most a quarter of a second for a piece under
 * way (site/coder.h), or for a lookup on the disk. False: a thread is left. It uses an entry of the
 * cache with its site, and the statistics, until the process ends. */
MUST_USE bool server_compression_end(struct server_resources *resources);
