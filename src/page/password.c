/* SPDX-License-Identifier: MIT */
#include "page/password.h"

#include "base/duration.h"
#include "base/hash.h"

#include <errno.h>
#include <sys/random.h>

int page_password_init(struct page_password *password, const char *hash)
{
    *password = (struct page_password){ .hash = hash };
    ssize_t got;
    do
        got = getrandom(password->seed, sizeof(password->seed), 0);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof(password->seed) ? 0 : -errno;
}

static bool is_known(const struct page_password_known *known, const uint64_t hash[2])
{
    return known->any && ((known->hash[0] ^ hash[0]) | (known->hash[1] ^ hash[1])) == 0;
}

static enum page_password_verdict judge(struct page_password *password, const char *text,
                                        uint64_t now_ns)
{
    struct page_password_known asked = { .any = true };
    for (unsigned i = 0; i < 2; i++)
        asked.hash[i] = hash_bytes(span_text(text), password->seed[i]);
    if (is_known(&password->right, asked.hash))
        return PAGE_PASSWORD_RIGHT;
    if (is_known(&password->wrong, asked.hash))
        return PAGE_PASSWORD_WRONG;
    if (password->second != now_ns / DURATION_SECOND)
        password->checks = 0;
    password->second = now_ns / DURATION_SECOND;
    if (password->checks == PAGE_PASSWORD_CHECKS)
        return PAGE_PASSWORD_LATER;
    password->checks++;
    int same = auth_hash_compare(password->hash, text);
    if (same < 0)
        return PAGE_PASSWORD_LATER; /* out of memory */
    bool right = same > 0;
    *(right ? &password->right : &password->wrong) = asked;
    return right ? PAGE_PASSWORD_RIGHT : PAGE_PASSWORD_WRONG;
}

enum page_password_verdict page_password_check(struct page_password *password, struct span field,
                                               uint64_t now_ns)
{
    if (!password->hash)
        return PAGE_PASSWORD_RIGHT;
    enum page_password_verdict verdict = PAGE_PASSWORD_WRONG;
    if (auth_basic_read(field, &password->basic))
        verdict = judge(password, password->basic.password, now_ns);
    auth_basic_forget(&password->basic); /* also when it was wrong */
    return verdict;
}
