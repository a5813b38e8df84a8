/* SPDX-License-Identifier: MIT */
#include "server/compression.h"

#include "model/model.h"
#include "os/clock.h"
#include "os/process.h"
#include "server/resources.h"
#include "site/coder.h"
#include "site/compress.h"
#include "site/compressor.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool forbids_transforming(const char *const *headers)
{
    static const char name[] = "Cache-Control:";
    for (; headers && *headers; headers++)
        if (strncasecmp(*headers, name, sizeof(name) - 1) == 0 &&
            strcasestr(*headers, "no-transform"))
            return true;
    return false;
}

enum server_compression server_compression_of(const struct config *config,
                                              const struct config_site *site,
                                              const struct model *model)
{
    if (!site->compress)
        return SERVER_COMPRESSION_OFF;
    if (config->compress_cpu == 0)
        return SERVER_COMPRESSION_NO_CPU;
    if (model->serves == STATS_SERVES_PROCESS)
        return SERVER_COMPRESSION_MODEL;
    if (config->cache_size_bytes == 0)
        return SERVER_COMPRESSION_NO_CACHE;
    if (forbids_transforming(site->headers))
        return SERVER_COMPRESSION_HEADER;
    return SERVER_COMPRESSION_ON;
}

bool server_compression_makes_tags(const struct config *config, const struct model *model)
{
    return config->compress_cpu > 0 && model->serves != STATS_SERVES_PROCESS &&
           config->cache_size_bytes > 0;
}

const char *server_compression_reason(enum server_compression reason)
{
    switch (reason) {
    case SERVER_COMPRESSION_ON:
        break;
    case SERVER_COMPRESSION_OFF:
        return "the site has `compress = off`";
    case SERVER_COMPRESSION_NO_CPU:
        return "`compress-cpu` is 0";
    case SERVER_COMPRESSION_MODEL:
        return "with model fork no cache outlives a connection; store .br, .zst or .gz files "
               "beside the files";
    case SERVER_COMPRESSION_NO_CACHE:
        return "`cache-size` is 0, and compressed variants are kept in the cache";
    case SERVER_COMPRESSION_HEADER:
        return "the site's Cache-Control says no-transform";
    }
    return "";
}

void server_compression_codings(char out[SERVER_COMPRESSION_CODINGS_MAX], bool lacking)
{
    static const char *const names[SITE_PLAIN] = {
        [SITE_BR] = "br",
        [SITE_ZSTD] = "zstd",
        [SITE_GZIP] = "gzip",
    };
    const unsigned codings = lacking ? ~(unsigned)site_coder_codings() : site_coder_codings();
    size_t len = 0;
    out[0] = '\0';
    for (unsigned v = 0; v < SITE_PLAIN; v++)
        if ((codings & 1u << v) != 0)
            len += (size_t)snprintf(out + len, SERVER_COMPRESSION_CODINGS_MAX - len, "%s%s",
                                    len > 0 ? ", " : "", names[v]);
}

void server_compression_describe(const struct config *config, const struct model *model,
                                 char out[SERVER_COMPRESSION_TEXT_MAX])
{
    char has[SERVER_COMPRESSION_CODINGS_MAX], lacks[SERVER_COMPRESSION_CODINGS_MAX];
    enum server_compression reason = SERVER_COMPRESSION_OFF;
    unsigned on = 0;
    for (unsigned i = 0; i < config->site_count; i++) {
        const enum server_compression of = server_compression_of(config, &config->sites[i], model);
        on += of == SERVER_COMPRESSION_ON;
        reason = of != SERVER_COMPRESSION_OFF ? of : reason;
    }
    server_compression_codings(has, false);
    server_compression_codings(lacks, true);
    if (on == 0)
        (void)snprintf(out, SERVER_COMPRESSION_TEXT_MAX, "none, because %s",
                       server_compression_reason(reason));
    else
        (void)snprintf(out, SERVER_COMPRESSION_TEXT_MAX,
                       "%s, in %u of %u site%s, with at most %llu %% of a CPU in each worker%s%s",
                       has, on, config->site_count, config->site_count == 1 ? "" : "s",
                       (unsigned long long)config->compress_cpu,
                       lacks[0] ? "; this build lacks " : "", lacks);
}

/* ---- the thread ---- */

static void count_work(const struct stats_writer *stats, const struct site_compressor *compressor,
                       struct site_compressor_totals *last)
{
    const struct site_compressor_totals now = site_compressor_totals(compressor);
    stats_writer_add(stats, STATS_compressed_variants, now.variants - last->variants);
    stats_writer_add(stats, STATS_compressed_from_bytes, now.before_bytes - last->before_bytes);
    stats_writer_add(stats, STATS_compressed_to_bytes, now.after_bytes - last->after_bytes);
    stats_writer_add(stats, STATS_compress_cpu_us,
                     now.cpu_ns / DURATION_US - last->cpu_ns / DURATION_US);
    stats_writer_add(stats, STATS_compress_pauses, now.pauses - last->pauses);
    stats_writer_add(stats, STATS_compress_useless, now.useless - last->useless);
    stats_writer_add(stats, STATS_content_tags, now.tags - last->tags);
    stats_writer_add(stats, STATS_compress_broken, now.broken - last->broken);
    stats_writer_add(stats, STATS_compress_share_refused, now.share_refused - last->share_refused);
    stats_writer_add(stats, STATS_deltas_made, now.deltas - last->deltas);
    stats_writer_add(stats, STATS_dictionaries_unknown, now.unknown - last->unknown);
    *last = now;
}

static void *compress_in_thread(void *resources_)
{
    const struct server_resources *resources = resources_;
    struct site_compressor *compressor = resources->shared.compressor;
    struct site_compressor_totals last = { 0 };
    struct stats_writer stats;
    stats_writer_open(&stats, resources->shared.stats);
    os_process_lower_priority();
    while (site_compressor_work(compressor))
        count_work(&stats, compressor, &last);
    count_work(&stats, compressor, &last);
    stats_writer_close(&stats);
    return NULL;
}

static bool start_thread(void *resources_)
{
    struct server_resources *resources = resources_;
    resources->compresses =
        pthread_create(&resources->compressing, NULL, compress_in_thread, resources) == 0;
    return resources->compresses;
}

/* Waits for the thread, but not long. */
static bool join_soon(pthread_t thread)
{
    const uint64_t due_ns = (uint64_t)os_clock_wall_ns() + DURATION_SECOND / 4;
    const struct timespec due = { .tv_sec = (time_t)(due_ns / DURATION_SECOND),
                                  .tv_nsec = (long)(due_ns % DURATION_SECOND) };
    return pthread_timedjoin_np(thread, NULL, &due) == 0;
}

bool server_compression_end(struct server_resources *resources)
{
    struct site_compressor *compressor = resources->shared.compressor;
    if (!compressor)
        return true;
    site_compressor_stop(compressor);
    if (resources->compresses && !join_soon(resources->compressing)) {
        (void)pthread_detach(resources->compressing);
        return false;
    }
    site_compressor_free(compressor);
    return true;
}

int server_compression_begin(struct server_resources *resources, const struct config *config,
                             const struct model *model, bool run)
{
    const bool tags = server_compression_makes_tags(config, model);
    bool any = false;
    for (unsigned i = 0; i < resources->site_count; i++) {
        const bool on = server_compression_of(config, &config->sites[i], model) ==
                        SERVER_COMPRESSION_ON;
        resources->options[i].compress = on ? site_coder_codings() : 0;
        resources->options[i].digests = tags;
        any = any || on || (tags && resources->options[i].etag != SITE_ETAG_TIME);
    }
    if (!any || !run)
        return 0;
    resources->shared.compressor = site_compressor_new((struct site_compressor_plan){
        .cpu_percent = (unsigned)config->compress_cpu,
        .share_bytes = (size_t)config->cache_size_bytes / SITE_COMPRESS_SHARE,
        .entry_bytes = (size_t)config->cache_size_bytes / SITE_CACHE_ENTRY_SHARE,
        .start = start_thread,
        .context = resources,
    });
    return resources->shared.compressor ? 0 : -ENOMEM;
}
