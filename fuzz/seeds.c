/* SPDX-License-Identifier: MIT
 *
 * Writes the request of every conformance case into a file of its own. The targets that read
 * requests begin with these files. So a new case is a new seed, and no copy of it is kept.
 *
 *     seeds CASES FOLDER LIST
 *
 * It knows no entity tag of a real file, so each {etag} becomes one fixed tag.
 */
#include "conformance/cases.h"

#include <errno.h>
#include <sys/stat.h>

static struct span fixed_etag(void *context, struct span path)
{
    (void)context;
    (void)path;
    return SPAN("\"0\"");
}

static bool write_file(const char *path, struct span bytes)
{
    FILE *out = fopen(path, "we");
    if (!out)
        return false;
    bool whole = fwrite(bytes.at, 1, bytes.len, out) == bytes.len;
    return fclose(out) == 0 && whole;
}

static bool write_seeds(const struct cases *cases, const char *folder, FILE *list)
{
    for (size_t i = 0; i < cases->count; i++) {
        char path[4096];
        const struct cases_case *c = &cases->at[i];
        (void)snprintf(path, sizeof(path), "%s/%03zu", folder, i);
        if (!write_file(path, span_of(c->request, c->request_len))) {
            perror(path);
            return false;
        }
        (void)fprintf(list, "%03zu %s\n", i, c->title);
    }
    return true;
}

int main(int argc, char **argv)
{
    const struct escape_tags tags = { .etag = fixed_etag };
    struct cases cases;
    if (argc != 4) {
        (void)fputs("usage: seeds CASES FOLDER LIST\n", stderr);
        return 2;
    }
    if (cases_read(&cases, argv[1], &tags) != 0)
        return 1;
    FILE *list = fopen(argv[3], "we");
    bool good = list && (mkdir(argv[2], 0777) == 0 || errno == EEXIST);
    if (!good)
        perror(argv[2]);
    good = good && write_seeds(&cases, argv[2], list);
    good = list && fclose(list) == 0 && good;
    cases_done(&cases);
    return good ? 0 : 1;
}
