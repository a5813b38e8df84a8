/* SPDX-License-Identifier: MIT
 *
 * The addresses of `listen` against each other, in whole configurations.
 */
#include "unit/config/folder.h"

static void each_pair_that_overlaps_is_reported_once(void **state)
{
    (void)state;
#define OVERLAP "overlap, so that only one of them can be listened at; remove one\n"
    assert_problems("[server]\nlisten = 127.0.0.1:80, [::1]:80, *:81\nlisten = *:80\n"
                    "listen = 0.0.0.0:80\n" SITE,
                    "weir.conf:3: error: listen: `*:80` and `127.0.0.1:80` (line 2) " OVERLAP
                    "weir.conf:3: error: listen: `*:80` and `[::1]:80` (line 2) " OVERLAP
                    "weir.conf:4: error: listen: `0.0.0.0:80` and `127.0.0.1:80` (line 2) " OVERLAP
                    "weir.conf:4: error: listen: `0.0.0.0:80` and `*:80` (line 3) " OVERLAP);
    assert_problems("[server]\nlisten = *:80\nlisten = localhost:80\n" SITE,
                    "weir.conf:3: error: listen: `localhost:80` and `*:80` (line 2) " OVERLAP);
    assert_problems("[server]\nlisten = localhost:80\nlisten = https://localhost:80\n" SITE,
                    "weir.conf:3: error: listen: `https://localhost:80` and `localhost:80` (line "
                    "2) are the same address; it is either http or https\n");
}

static void two_spellings_of_an_address_are_one(void **state)
{
    (void)state;
    assert_problems("[server]\nlisten = [::1]:80\nlisten = [0:0:0:0:0:0:0:1]:080\n" SITE,
                    "weir.conf:3: error: listen: `[::1]:80` is there twice (first on line 2)\n");
    assert_problems("[server]\nlisten = 080\nlisten = 127.0.0.1:80\n" SITE,
                    "weir.conf:3: error: listen: `127.0.0.1:80` is there twice (first on line "
                    "2)\n");
    assert_problems("[server]\nlisten = [0::0]:80\nlisten = 127.0.0.1:80\n" SITE,
                    "weir.conf:3: error: listen: `127.0.0.1:80` and `[::]:80` (line 2) " OVERLAP);
    struct config_store *store = read_text("[server]\nlisten = https://[2001:DB8::0:1]\n" SITE);
    assert_string_equal(store ? config_read_text(store, SETTING_listen) : "",
                        "https://[2001:db8::1]:443");
    config_read_free(store);
}

/* With a comparison of each with each, this takes a minute. */
static void many_addresses_are_compared(void **state)
{
    (void)state;
    enum { COUNT = 20000, LINE = 32 };
    char *text = malloc(sizeof("[server]\n" SITE) + (size_t)COUNT * LINE + 2 * LINE);
    assert_non_null(text);
    char *end = text + sprintf(text, "[server]\n");
    for (unsigned i = 0; i < COUNT; i++)
        end += sprintf(end, "listen = 127.0.%u.%u:8080\n", i / 256, i % 256);
    (void)sprintf(end, "listen = https://127.0.0.7:8080\n" SITE);
    assert_problems(text, "weir.conf:20002: error: listen: `https://127.0.0.7:8080` and "
                          "`127.0.0.7:8080` (line 9) are the same address; it is either http or "
                          "https\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_pair_that_overlaps_is_reported_once),
        cmocka_unit_test(two_spellings_of_an_address_are_one),
        cmocka_unit_test(many_addresses_are_compared),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
