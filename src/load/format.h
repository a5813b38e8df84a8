/* SPDX-License-Identifier: MIT
 *
 * Numbers for people: three or four digits, and a unit that fits.
 * Texts of any bytes, on one line.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { LOAD_FORMAT_MAX = 24 };

struct load_formatted {
    char text[LOAD_FORMAT_MAX];
};

struct load_formatted load_format_time(double ns);      /* 1.23 ms */
struct load_formatted load_format_bytes(double bytes);  /* 1.23 MiB */
struct load_formatted load_format_share(double share);  /* 1.23 % */
struct load_formatted load_format_number(double value); /* 12.3, 12345 */

/* Prints a text of any bytes and length on a part of a line, `room` columns and at most
 * LOAD_FORMAT_TEXT_MAX. A text that is cut has "..." behind it. */
enum { LOAD_FORMAT_TEXT_MAX = 64 };
void load_format_text(FILE *out, const char *text, size_t room);
