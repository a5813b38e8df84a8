/* SPDX-License-Identifier: MIT */
#include "program/version.h"

#include <program_commit.inc> /* made by packaging/commit */

#include <curses.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <seccomp.h>
#include <zlib.h>
#ifdef WEIR_BROTLI
#include <brotli/encode.h>
#endif
#ifdef WEIR_ZSTD
#include <zstd.h>
#endif

static void print_libraries(FILE *out)
{
    const struct scmp_version *seccomp = seccomp_version();
    fprintf(out, "libraries  OpenSSL %s, zlib %s", OpenSSL_version(OPENSSL_VERSION_STRING),
            zlibVersion());
#ifdef WEIR_BROTLI
    uint32_t brotli = BrotliEncoderVersion();
    fprintf(out, ", brotli %u.%u.%u", brotli >> 24, brotli >> 12 & 0xfff, brotli & 0xfff);
#endif
#ifdef WEIR_ZSTD
    fprintf(out, ", zstd %s", ZSTD_versionString());
#endif
    fprintf(out, ", liburing %s, libseccomp", WEIR_URING);
    if (seccomp)
        fprintf(out, " %u.%u.%u", seccomp->major, seccomp->minor, seccomp->micro);
    fprintf(out, ", jansson %s, %s\n", jansson_version_str(), curses_version());
}

static void print_features(FILE *out)
{
    fputs("features   HTTP/2, TLS 1.3, io_uring, seccomp, landlock, gzip", out);
#ifdef WEIR_BROTLI
    fputs(", br", out);
#endif
#ifdef WEIR_ZSTD
    fputs(", zstd", out);
#endif
#ifdef WEIR_WITHOUT_STATS
    fputs(", no statistics", out);
#endif
    fputc('\n', out);
}

void program_version_print(FILE *out)
{
    fprintf(out, "weir %s\n", WEIR_VERSION);
    fprintf(out, "commit     %s\n", WEIR_COMMIT);
#ifdef __clang__
    fprintf(out, "compiler   clang %s\n", __clang_version__);
#else
    fprintf(out, "compiler   gcc %s\n", __VERSION__);
#endif
    print_libraries(out);
    print_features(out);
}
