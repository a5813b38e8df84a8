/* SPDX-License-Identifier: MIT */
#include "auth/hash.h"

#include <crypt.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static_assert((int)AUTH_HASH_MAX == (int)CRYPT_OUTPUT_SIZE, "a hash fits");

bool auth_hash_can_use(const char *hash)
{
    int rc = crypt_checksalt(hash);
    return strlen(hash) < AUTH_HASH_MAX && hash[0] == '$' &&
           (rc == CRYPT_SALT_OK || rc == CRYPT_SALT_METHOD_LEGACY);
}

/* The length of a hash is no secret, but the place where two hashes differ is. */
static bool is_same_hash(const char *a, const char *b)
{
    size_t len = strlen(a);
    unsigned different = 0;
    if (len != strlen(b))
        return false;
    for (size_t i = 0; i < len; i++)
        different |= (unsigned char)a[i] ^ (unsigned char)b[i];
    return different == 0;
}

static void free_data(struct crypt_data *data)
{
    if (data)
        explicit_bzero(data, sizeof(*data));
    free(data);
}

int auth_hash_compare(const char *hash, const char *password)
{
    struct crypt_data *data = calloc(1, sizeof(*data));
    if (!data)
        return -ENOMEM;
    errno = 0;
    const char *got = crypt_r(password, hash, data);
    const bool made = got && got[0] != '*';
    int result = made && is_same_hash(got, hash) ? 1 : 0;
    if (!made && errno == ENOMEM)
        result = -ENOMEM;
    free_data(data);
    return result;
}

int auth_hash_make(const char *password, char out[AUTH_HASH_MAX])
{
    char setting[CRYPT_GENSALT_OUTPUT_SIZE];
    struct crypt_data *data = calloc(1, sizeof(*data));
    if (!data)
        return -ENOMEM;
    const char *hash = NULL;
    if (crypt_gensalt_rn("$y$", 0, NULL, 0, setting, sizeof(setting)))
        hash = crypt_r(password, setting, data);
    int rc = hash && hash[0] != '*' ? 0 : -EINVAL;
    if (rc == 0)
        memcpy(out, hash, strlen(hash) + 1);
    free_data(data);
    return rc;
}
