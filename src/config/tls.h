/* SPDX-License-Identifier: MIT
 *
 * The settings of https against each other and against the disk: files that exist, a certificate
 * where one is needed, a key that no client can read. The content of the files is not read here:
 * tls_server_new and `weir check` read it.
 *
 * Private to config/.
 */
#pragma once

#include "config/store.h"

void config_tls_verify(struct config_store *store);
