/* SPDX-License-Identifier: MIT
 *
 * Files that only the server may read, such as keys and hashes of passwords.
 *
 * Private to config/.
 */
#pragma once

#include "config/store.h"

#include <sys/types.h>

/* Warns when every user of the machine can read the file of `item`, and refuses a file inside the
 * root of a site. `name` is the label of the setting (config_store_label), `what` is what the file
 * has, and `mode` is that of the file. */
void config_secrecy_check(struct config_store *store, const struct config_item *item,
                          const char *name, const char *what, mode_t mode);
