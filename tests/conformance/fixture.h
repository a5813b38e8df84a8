/* SPDX-License-Identifier: MIT
 *
 * Makes the folder that the cases are served from, as fixture.txt lists it, in
 * a new temporary directory, and takes it away again.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>

struct fixture {
    char *top;         /* the temporary directory */
    char *root;        /* what is served: a folder in it */
    bool unprivileged; /* a file of mode 000 cannot be read by this process */
};

/* Makes everything. As root it gives the files to an unprivileged user and
 * becomes that user (effective ids), so that modes mean something. Returns 0,
 * or -1 after a line on standard error. */
MUST_USE int fixture_make(struct fixture *ret_fixture, const char *description_path);

/* Becomes root again where it was: to read what only the one who started this may,
 * such as a checkout in his own folder, and to look for leaks at the end. */
void fixture_regain_rights(void);

/* Gives the rights up again. */
void fixture_give_up_rights(struct fixture *fixture);

/* Regains the rights, removes everything and frees. Accepts a zeroed one. */
void fixture_remove(struct fixture *fixture);

/* Reads the bytes of a file below the root; the caller frees them. NULL when there is none. */
char *fixture_read(const struct fixture *fixture, struct span path, size_t *ret_len);
