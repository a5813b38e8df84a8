/* SPDX-License-Identifier: MIT
 *
 * Makes and tries random paths (traversal.h).
 */
#include "traversal.h"

#include "base/hash.h"
#include "play.h"

#include <stdio.h>
#include <stdlib.h>

/* Half of the starts exist, so that the rest of a path continues from many folders. */
static const char *const pieces[] = {
    "..",
    "..",
    "..",
    ".",
    "",
    "/",
    "%2e%2e",
    "%2E%2e",
    ".%2e",
    "%2e.",
    "%2e",
    "..%2f",
    "%2f",
    "%2F..%2F",
    "..%5c",
    "..\\",
    "%5c..%5c",
    "%252e%252e",
    "%252f",
    "%c0%ae%c0%ae",
    "%c0%af",
    "\xc0\xae\xc0\xae",
    "%e0%80%ae",
    "..%00",
    "%00",
    "..;",
    "...",
    "....//",
    "..%20",
    "..%0a",
    "~",
    "%u002e",
    "..?",
    "#",

    "d",
    "d",
    "sub",
    "a",
    "b",
    "c",
    "a/b/c",
    "list",
    "zdir",
    "linkdir",
    "linkdir_out",
    "link_up",
    "link_out",
    "link_in",
    "link_hidden",
    "loop",
    "dangling",
    "fifo",
    "noperm.d",
    ".well-known",
    ".git",
    "hello.txt",
    "index.html",
    "config",
    ".env",
    "site",
    "outside",
    "outside.txt",
    "secret.txt",
    "errors",
    "404.html",
    "access.log",
    "etc",
    "passwd",
    "proc",
    "self",
    "environ",
    "root",
    "fd",
    "cwd",
    "tmp",
};

static const char *const starts[] = { "/", "/", "/", "/", "//", "http://a/", "http://a", "\\", "" };
static const char *const hosts[] = { "a",           "list.test", "open.test",
                                     "x.wild.test", "spa.test",  "rules.test" };

/* Texts that occur only outside the root. */
static const char *const secrets[] = { "outside the root", "root:x:", "root:*:" };

static const char *pick(const char *const *from, size_t count, uint64_t *random)
{
    *random = hash_bytes(span_of((const char *)random, sizeof(*random)), 1);
    return from[(*random >> 20) % count];
}

#define PICK(from, random) pick(from, sizeof(from) / sizeof(*(from)), random)

static size_t make_request(char *out, size_t size, uint64_t *random)
{
    size_t len = (size_t)snprintf(out, size, "GET %s", PICK(starts, random));
    unsigned count = 1 + (unsigned)(*random >> 40) % 9;
    for (unsigned i = 0; i < count; i++)
        len +=
            (size_t)snprintf(out + len, size - len, "%s%s", i > 0 ? "/" : "", PICK(pieces, random));
    len += (size_t)snprintf(out + len, size - len, " HTTP/1.1\r\nHost: %s\r\n\r\n",
                            PICK(hosts, random));
    CHECK(len < size);
    return len;
}

static bool is_good(struct span answer)
{
    static const char *const statuses[] = { "200", "301", "302", "400", "403", "404" };
    bool known = false;
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        known |= answer.len > 12 && memcmp(answer.at + 9, statuses[i], 3) == 0;
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        if (memmem(answer.at, answer.len, secrets[i], strlen(secrets[i])))
            return false;
    return known;
}

unsigned traversal_try(struct serve *serve, unsigned count, uint64_t seed)
{
    enum { SHOWN_MAX = 5 };
    unsigned bad = 0;
    for (unsigned i = 0; i < count; i++) {
        char request[1024];
        uint64_t random = seed + i;
        size_t len = make_request(request, sizeof request, &random);
        struct play_input input = { .bytes = span_of(request, len) };
        struct play_result result = play_connection(&serve->worker, input);
        if (!is_good(span_of(result.bytes, result.len)) && ++bad <= SHOWN_MAX) {
            (void)printf("FAILED: this request left the root, or had no valid answer:\n    ");
            escape_show(stdout, span_of(request, len), 400);
            (void)printf("    ");
            escape_show(stdout, span_of(result.bytes, result.len), 200);
            (void)printf("\n");
        }
        free(result.bytes);
    }
    return bad;
}
