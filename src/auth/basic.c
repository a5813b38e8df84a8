/* SPDX-License-Identifier: MIT */
#include "auth/basic.h"

#include "base/base64.h"

#include <string.h>

static bool has_control(struct span text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] < 0x20 || text.at[i] == 0x7f)
            return true;
    return false;
}

/* Splits what was decoded at the first colon: only a password may have more of them. */
static bool split_text(struct auth_basic *basic, size_t len)
{
    const char *colon = memchr(basic->text, ':', len);
    if (!colon || has_control(span_of(basic->text, len)))
        return false;
    basic->user = span_of(basic->text, (size_t)(colon - basic->text));
    basic->password = colon + 1;
    const size_t rest = len - basic->user.len - 1;
    basic->text[len] = '\0';
    return basic->user.len <= AUTH_USER_MAX && rest > 0 && rest <= AUTH_PASSWORD_MAX;
}

bool auth_basic_read(struct span field, struct auth_basic *ret_basic)
{
    static const struct span scheme = SPAN("Basic ");
    size_t len;
    if (!span_equal_nocase(span_first(field, scheme.len), scheme))
        return false;
    if (base64_decode(span_trim(span_skip(field, scheme.len)), (uint8_t *)ret_basic->text,
                      sizeof(ret_basic->text) - 1, &len) &&
        split_text(ret_basic, len))
        return true;
    auth_basic_forget(ret_basic);
    return false;
}

void auth_basic_forget(struct auth_basic *basic)
{
    explicit_bzero(basic, sizeof(*basic));
}
