/* SPDX-License-Identifier: MIT
 *
 * Credentials and lists of users. The first byte chooses. A list that is accepted has each of its
 * users once, and finds each of them. Nothing of refused credentials is kept. No hash is compared:
 * that would be too slow.
 */
#include "auth/basic.h"
#include "auth/file.h"
#include "base/check.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_credentials(struct span field)
{
    struct auth_basic basic = { .text = "" };
    if (auth_basic_read(field, &basic)) {
        CHECK(basic.user.len <= AUTH_USER_MAX);
        CHECK(!memchr(basic.user.at, ':', basic.user.len));
        CHECK(basic.password == basic.user.at + basic.user.len + 1);
        CHECK(strlen(basic.password) > 0 && strlen(basic.password) <= AUTH_PASSWORD_MAX);
        auth_basic_forget(&basic);
    }
    for (size_t i = 0; i < sizeof(basic.text); i++)
        CHECK(basic.text[i] == 0);
}

static void find_users(const struct auth_file *file, struct span text)
{
    size_t found = 0;
    while (text.len > 0) {
        const char *end = memchr(text.at, '\n', text.len);
        const struct span line = span_first(text, end ? (size_t)(end - text.at) : text.len);
        const char *colon = line.len > 0 ? memchr(line.at, ':', line.len) : NULL;
        bool known = false;
        if (colon && line.at[0] != '#') {
            (void)auth_file_find(file, span_of(line.at, (size_t)(colon - line.at)), 7, &known);
            CHECK(known);
            found++;
        }
        text = span_skip(text, line.len + (end != NULL));
    }
    CHECK(found == auth_file_count(file));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const struct span text = span_of((const char *)data + 1, size - 1);
    if (data[0] & 1) {
        read_credentials(text);
        return 0;
    }
    unsigned line = 0;
    const char *why = NULL;
    struct auth_file *file = auth_file_parse(text, &line, &why);
    CHECK((file == NULL) == (why != NULL));
    if (file)
        find_users(file, text);
    auth_file_free(file);
    return 0;
}
