/* SPDX-License-Identifier: MIT */
#include "tls/wipe.h"

#include <malloc.h>
#include <openssl/crypto.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool wiping;

static void *allocate(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return malloc(size);
}

static void release(void *at, const char *file, int line)
{
    (void)file;
    (void)line;
    if (wiping && at)
        OPENSSL_cleanse(at, malloc_usable_size(at));
    free(at);
}

static void *resize(void *at, size_t size, const char *file, int line)
{
    if (!wiping || !at || size == 0) {
        if (size > 0)
            return realloc(at, size);
        release(at, file, line);
        return NULL;
    }
    void *moved = malloc(size);
    size_t had = malloc_usable_size(at);
    if (moved) {
        memcpy(moved, at, had < size ? had : size);
        release(at, file, line);
    }
    return moved;
}

void tls_wipe_prepare(void)
{
    (void)CRYPTO_set_mem_functions(allocate, resize, release);
}

void tls_wipe_begin(void)
{
    wiping = true;
}

void tls_wipe_end(void)
{
    wiping = false;
}
