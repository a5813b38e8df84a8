/* SPDX-License-Identifier: MIT
 *
 * Makes the folder of the cases, as fixture.txt lists it, in a new temporary
 * directory, and removes it.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>

struct fixture {
    char *top;         /* the temporary directory */
    char *root;        /* the served folder, in `top` */
    bool unprivileged; /* this process cannot read a file of mode 000 */
};

/* Makes everything. As root it gives the files to an unprivileged user and
 * becomes that user (effective ids), so that modes have an effect. Returns 0,
 * or -1 after a line on standard error. */
MUST_USE int fixture_make(struct fixture *ret_fixture, const char *description_path);

/* Becomes root again, where the runner started as root. Only root may read a checkout
 * in a private folder, and search for leaks at the end. */
void fixture_regain_rights(void);

/* Becomes the unprivileged user again. */
void fixture_give_up_rights(struct fixture *fixture);

/* Regains the rights, removes everything and frees. Accepts a zeroed struct. */
void fixture_remove(struct fixture *fixture);

/* Reads the bytes of a file below the root; which the caller frees. NULL when there is no file. */
char *fixture_read(const struct fixture *fixture, struct span path, size_t *ret_len);
