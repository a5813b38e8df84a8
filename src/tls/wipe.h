/* SPDX-License-Identifier: MIT
 *
 * Clears the memory that OpenSSL frees while a private key is read. Its decoders free copies of the
 * key as they are, and processes that need no key would get these copies with a fork.
 *
 * The key in use is cleared by OpenSSL itself when it is freed. Not for programs with threads.
 */
#pragma once

/* Prepares OpenSSL. It has an effect only before OpenSSL's first allocation in this process, and
 * may be called again. */
void tls_wipe_prepare(void);

/* Memory that is freed in between is cleared. */
void tls_wipe_begin(void);
void tls_wipe_end(void);
