/* SPDX-License-Identifier: MIT
 *
 * Finding the site of a host.
 */
#include "session/hosts.h"
#include "session/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const char *const docs_hosts[] = { "docs.example.org", "example.org", NULL };
static const char *const wild_hosts[] = { "*.example.org", NULL };
static const char *const deep_hosts[] = { "*.deep.example.org", NULL };

static const struct session_site *find(const struct session_hosts *hosts, const char *name)
{
    return session_hosts_find(hosts, span_text(name));
}

static void prefers_exact_names_to_wildcards(void **state)
{
    (void)state;
    const struct session_site sites[] = {
        { .hosts = wild_hosts }, { .hosts = docs_hosts }, { .hosts = deep_hosts }, { 0 }
    };
    struct session_hosts *hosts = session_hosts_new(sites, 4);
    assert_non_null(hosts);
    assert_ptr_equal(find(hosts, "docs.example.org"), &sites[1]);
    assert_ptr_equal(find(hosts, "DOCS.Example.ORG"), &sites[1]);
    assert_ptr_equal(find(hosts, "docs.example.org."), &sites[1]);
    assert_ptr_equal(find(hosts, "example.org"), &sites[1]);
    assert_ptr_equal(find(hosts, "a.example.org"), &sites[0]);
    assert_ptr_equal(find(hosts, "a.b.example.org"), &sites[0]);
    assert_ptr_equal(find(hosts, "x.deep.example.org"), &sites[2]);
    assert_ptr_equal(find(hosts, "deep.example.org"), &sites[0]);
    assert_ptr_equal(find(hosts, "other.org"), &sites[3]);
    assert_ptr_equal(find(hosts, ""), &sites[3]);
    session_hosts_free(hosts);
}

static void finds_no_site_for_an_unknown_host(void **state)
{
    (void)state;
    const struct session_site sites[] = { { .hosts = docs_hosts } };
    struct session_hosts *hosts = session_hosts_new(sites, 1);
    assert_non_null(hosts);
    assert_null(find(hosts, "other.org"));
    assert_null(find(hosts, ""));
    assert_null(find(hosts, "sexample.org"));
    char long_name[300];
    memset(long_name, 'a', sizeof(long_name));
    assert_null(session_hosts_find(hosts, span_of(long_name, sizeof(long_name))));
    session_hosts_free(hosts);
}

static void finds_the_site_without_names_for_every_host(void **state)
{
    (void)state;
    static const char *const none[] = { NULL };
    const struct session_site sites[] = { { .hosts = none } };
    struct session_hosts *hosts = session_hosts_new(sites, 1);
    assert_non_null(hosts);
    assert_ptr_equal(find(hosts, "anything"), &sites[0]);
    session_hosts_free(hosts);
}

static void assert_rule(const struct session_hosts *hosts, const char *host, const char *rule)
{
    assert_true(span_equal(session_hosts_rule(hosts, span_text(host)), span_text(rule)));
}

static void gives_the_name_that_matches(void **state)
{
    (void)state;
    const struct session_site sites[] = {
        { .hosts = wild_hosts }, { .hosts = docs_hosts }, { .hosts = deep_hosts }, { 0 }
    };
    struct session_hosts *hosts = session_hosts_new(sites, 4);
    assert_non_null(hosts);
    assert_rule(hosts, "DOCS.example.org.", "docs.example.org");
    assert_rule(hosts, "a.b.example.org", ".example.org");
    assert_rule(hosts, "x.deep.example.org", ".deep.example.org");
    assert_rule(hosts, "other.org", "*");
    session_hosts_free(hosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefers_exact_names_to_wildcards),
        cmocka_unit_test(finds_no_site_for_an_unknown_host),
        cmocka_unit_test(finds_the_site_without_names_for_every_host),
        cmocka_unit_test(gives_the_name_that_matches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
