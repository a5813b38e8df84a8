/* SPDX-License-Identifier: MIT
 *
 * Handshakes before a run with TLS or HTTP/2. Without them, a certificate that is not trusted
 * would fail every request of the run. A probe sends no request, so that the server counts those
 * of the run alone.
 */
#pragma once

#include "load/plan.h"

/* Makes a handshake with each server of the plan that needs one, for TLS or for HTTP/2 in clear
 * text. It does so for 32 servers at most. False: a certificate is not trusted, or a server does
 * not speak TLS or HTTP/2. Then `refusal` says what to do. A server that cannot be reached is no
 * reason to refuse: the run counts its errors. Takes --connect-timeout for each. */
MUST_USE bool load_probe_servers(const struct load_plan *plan, struct option_refusal *refusal);
