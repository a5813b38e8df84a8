/* SPDX-License-Identifier: MIT
 *
 * A key and a self-signed certificate for this machine, made once and kept in a folder of the user,
 * so that `weir serve` can offer https at once. It is for development: a client trusts it only if
 * its user decides so.
 *
 * The key and the certificate are in one file, which is replaced as a whole. So several processes
 * that make it at the same time never leave a key beside the certificate of another one.
 */
#pragma once

#include "tls/identity.h"

enum {
    TLS_SELFSIGNED_PATH_MAX = 4096,
    TLS_SELFSIGNED_LIFE_S = 397 * 86400, /* browsers accept 398 days */
    TLS_SELFSIGNED_RENEW_S = 30 * 86400  /* a certificate that ends earlier is replaced */
};

struct tls_selfsigned {
    char file[TLS_SELFSIGNED_PATH_MAX];        /* key and certificate, mode 0600: both of a pair */
    char certificate[TLS_SELFSIGNED_PATH_MAX]; /* a copy without the key, 0644: for clients */
    char fingerprint[TLS_FINGERPRINT_MAX];
    int64_t ends_s;
    bool made; /* by this call */
};

/* The names under which a client on this machine reaches it: localhost, 127.0.0.1, ::1 and the
 * name of the machine, if that is a name that DNS allows. */
struct tls_selfsigned_names {
    const char *list[5]; /* NULL at the end; may point into `machine` */
    char machine[256];
};
void tls_selfsigned_local(struct tls_selfsigned_names *ret_names);

/* The folder of this user: $XDG_STATE_HOME/weir or ~/.local/state/weir, and for root /var/lib/weir.
 * 0 or -errno. -ENOENT: the user has no home. */
MUST_USE int tls_selfsigned_folder(char out[TLS_SELFSIGNED_PATH_MAX]);

/* Finds the certificate in the folder. Makes it if it is missing, damaged, for other names, or ends
 * soon. Names are in lower case, and addresses as inet_ntop writes them; NULL at the end, at least
 * one. The folder is made with mode 0700 if it is missing. It must belong to this user, only this
 * user may write to it, and no link is followed in it. False with a one-line reason in `why`. */
MUST_USE bool tls_selfsigned_get(const char *folder, const char *const *names, int64_t now_s,
                                 struct tls_selfsigned *ret_found, char why[TLS_WHY_MAX]);
