/* SPDX-License-Identifier: MIT */
#include "server/balance.h"

int server_balance_choose(const struct server_balance_worker *workers, unsigned count,
                          unsigned from)
{
    int chosen = -1;
    for (unsigned i = 0; i < count; i++) {
        unsigned index = (from + i) % count;
        const struct server_balance_worker *worker = &workers[index];
        if (worker->takes && (chosen < 0 || worker->load < workers[chosen].load))
            chosen = (int)index;
    }
    return chosen;
}
