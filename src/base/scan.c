/* SPDX-License-Identifier: MIT
 *
 * The scalar twins: each is the definition of its class, one byte at a time. They serve machines
 * without SSE2, short runs, and the test that compares them with the fast routines of scan.h.
 */
#include "base/scan.h"

size_t scan_field_value_end_scalar(const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)at[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return i;
    }
    return len;
}

size_t scan_target_end_scalar(const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)at[i];
        if (c <= ' ' || c == 0x7f)
            return i;
    }
    return len;
}

size_t scan_plain_name_end_scalar(const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = ascii_lower(at[i]);
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-')
            return i;
    }
    return len;
}

size_t scan_log_unsafe_scalar(const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)at[i];
        if (c < ' ' || c >= 0x7f || c == '"' || c == '\\')
            return i;
    }
    return len;
}

size_t scan_path_special_scalar(const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = at[i];
        if (c == '%' || c == '?' || c == '#' || c == '\0')
            return i;
        if (c == '/' && i + 1 < len && (at[i + 1] == '/' || at[i + 1] == '.'))
            return i;
    }
    return len;
}
