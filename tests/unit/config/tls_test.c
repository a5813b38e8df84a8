/* SPDX-License-Identifier: MIT
 *
 * The settings of https in whole configurations, in a folder of their own. Of a file this layer
 * reads whether it has a private key, and no more.
 */
#include "unit/config/folder.h"

static const char *const files[] = { "c.pem", "k.pem", "both.pem", "site/k.pem" };

static int make_pairs(void **state)
{
    if (make_folder(state) < 0)
        return -1;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        write_file(files[i], i == 0 ? "-" : "-----BEGIN PRIVATE KEY-----\n");
        assert_int_equal(chmod(files[i], 0600), 0);
    }
    return 0;
}

static int remove_pairs(void **state)
{
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        unlink(files[i]);
    return remove_folder(state);
}

#define HTTPS "[server]\nlisten = https://*:443\n"
#define PAIR  "tls-certificate = c.pem\ntls-key = k.pem\n"

static void a_site_has_its_certificates_in_order(void **state)
{
    (void)state;
    struct config_store *store =
        read_text("[server]\nlisten = https://*, http://*\ntls-policy = modern\n" SITE
                  "tls-certificate = c.pem\ntls-certificate = both.pem\ntls-key = k.pem\n"
                  "tls-key = both.pem\ntls-min = 1.3\nhsts = 365d\nhttps-redirect = on\n");
    assert_int_equal(config_read_errors(store), 0);
    const struct config *config = config_read_result(store);
    const struct config_site *site = &config->sites[0];
    assert_string_equal(config->listen[0], "https://*:443");
    assert_string_equal(config->listen[1], "*:80");
    assert_string_equal(config->tls_policy, "modern");
    assert_string_equal(site->tls_certificates[0], "c.pem");
    assert_string_equal(site->tls_certificates[1], "both.pem");
    assert_null(site->tls_certificates[2]);
    assert_string_equal(site->tls_keys[0], "k.pem");
    assert_string_equal(site->tls_keys[1], "both.pem");
    assert_string_equal(site->tls_min, "1.3");
    assert_int_equal(site->hsts_s, 31536000);
    assert_true(site->https_redirect);
    config_read_free(store);
}

static void without_settings_https_is_off(void **state)
{
    (void)state;
    struct config_store *store = read_text(SITE);
    const struct config *config = config_read_result(store);
    assert_string_equal(config->tls_policy, "intermediate");
    assert_true(config->http2);
    assert_false(config->h2c);
    assert_int_equal(config->http2_streams, 100);
    assert_null(config->sites[0].tls_certificates[0]);
    assert_null(config->sites[0].tls_keys[0]);
    assert_string_equal(config->sites[0].tls_min, "1.2");
    assert_true(config->sites[0].hsts_s == CONFIG_NEVER);
    assert_false(config->sites[0].https_redirect);
    config_read_free(store);
}

static void only_addresses_of_this_machine_need_no_certificate(void **state)
{
    (void)state;
    assert_problems("[server]\nlisten = https://localhost:8443, https://127.0.0.2:1\n" SITE, "");
    assert_problems("[server]\nlisten = https://localhost:8443\nlisten = https://*:443\n" SITE,
                    "weir.conf:3: error: listen: `https://*:443` can be reached from other "
                    "machines, so a site needs the settings tls-certificate and tls-key; only "
                    "https://localhost works without\n");
    assert_problems(HTTPS SITE PAIR, "");
}

static void reports_an_address_with_two_schemes(void **state)
{
    (void)state;
    assert_problems("[server]\nlisten = 127.0.0.1:80\nlisten = https://localhost:80\n" SITE,
                    "weir.conf:3: error: listen: `https://localhost:80` and `127.0.0.1:80` (line "
                    "2) are the same address; it is either http or https\n");
    assert_problems("[server]\nlisten = [::1]:80, localhost:80\n" SITE,
                    "weir.conf:2: error: listen: `localhost:80` and `[::1]:80` (line 2) name the "
                    "same address; remove one\n");
    assert_problems("[server]\nlisten = https://localhost:0, localhost:0, 127.0.0.1:0\n" SITE, "");
    assert_problems(
        "[server]\nlisten = localhost:80\nstats-listen = 127.0.0.1:80\n" SITE,
        "weir.conf:3: error: stats-listen: `127.0.0.1:80` is an address of `listen`, "
        "or overlaps one; the statistics page needs one of its own: set stats-listen\n");
}

static void reports_an_address_that_is_a_part_of_another(void **state)
{
    (void)state;
    assert_problems("[server]\nlisten = 127.0.0.1:80\nlisten = *:80\n" SITE,
                    "weir.conf:3: error: listen: `*:80` and `127.0.0.1:80` (line 2) "
                    "overlap, so that only one of them can be listened at; remove one\n");
    assert_problems("[server]\nlisten = [::]:80, 0.0.0.0:80\n" SITE,
                    "weir.conf:2: error: listen: `0.0.0.0:80` and `[::]:80` (line 2) overlap, so "
                    "that only one of them can be listened at; remove one\n");
    assert_problems("[server]\nlisten = *:8081\n" SITE,
                    "weir: `127.0.0.1:8081` is an address of `listen`, or overlaps one; the "
                    "statistics page needs one of its own: set stats-listen\n");
    assert_problems("[server]\nlisten = 0.0.0.0:80, [::1]:80, 127.0.0.1:81, unix:/run/w, *:0, "
                    "127.0.0.1:0\n" SITE,
                    "");
}

static void reports_keys_without_their_certificate(void **state)
{
    (void)state;
    assert_problems(HTTPS SITE PAIR "tls-key = both.pem\n",
                    "weir.conf:6: error: tls-key: there are 2 keys for 1 certificates; name a key "
                    "for each certificate, in the same order\n");
    assert_problems("[server]\nlisten = https://localhost:1\n" SITE "tls-key = k.pem\n",
                    "weir.conf:5: error: tls-key: the key has no certificate; name it with "
                    "tls-certificate\n");
}

/* Not that every user can read its key. */
static void reports_a_certificate_without_its_key(void **state)
{
    (void)state;
    assert_int_equal(chmod("c.pem", 0644), 0);
    assert_problems(HTTPS SITE "tls-certificate = c.pem\n",
                    "weir.conf:5: error: tls-certificate: `c.pem` has no private key; name the "
                    "file of the key with tls-key\n");
    assert_problems(HTTPS "[site a]\nroot = .\ntls-certificate = c.pem\n",
                    "weir.conf:5: error: tls-certificate: `c.pem` has no private key; name the "
                    "file of the key with tls-key\n");
    assert_int_equal(chmod("c.pem", 0600), 0);
    assert_problems(HTTPS SITE "tls-certificate = both.pem\n", "");
}

static void reports_files_that_are_not_there(void **state)
{
    (void)state;
    assert_problems(HTTPS SITE "tls-certificate = nowhere.pem\ntls-key = site\n",
                    "weir.conf:5: error: tls-certificate: `nowhere.pem` cannot be read: there is "
                    "no such file\n"
                    "weir.conf:6: error: tls-key: `site` is not a file\n");
}

static void a_key_must_be_secret(void **state)
{
    (void)state;
    assert_problems(HTTPS SITE "tls-certificate = c.pem\ntls-key = site/k.pem\n",
                    "weir.conf:6: error: tls-key: `site/k.pem` is inside the root of [site a], so "
                    "clients could read the key; move it elsewhere\n");
    assert_int_equal(chmod("both.pem", 0644), 0);
    assert_problems(HTTPS SITE "tls-certificate = both.pem\n",
                    "weir.conf:5: warning: tls-certificate: every user of this machine can read "
                    "the key in `both.pem`; run: chmod o-r both.pem\n");
    assert_int_equal(chmod("both.pem", 0600), 0);
    assert_int_equal(chmod("c.pem", 0644), 0); /* a certificate alone is public */
    assert_problems(HTTPS SITE PAIR, "");
    assert_problems(HTTPS SITE "tls-certificate = c.pem\ntls-key = c.pem\n", "");
}

static void reports_settings_that_need_an_https_address(void **state)
{
    (void)state;
    assert_problems(SITE PAIR "hsts = 1h\nhttps-redirect = on\n",
                    "weir.conf:3: warning: tls-certificate: this has no effect: no address of "
                    "`listen` begins with https://\n"
                    "weir.conf:5: warning: hsts: this has no effect: no address of `listen` begins "
                    "with https://\n"
                    "weir.conf:6: error: https-redirect: there is no address to redirect to: no "
                    "`listen` begins with https://, and no `forwarded-from` names a proxy that "
                    "speaks https\n");
    assert_problems(SITE "hsts = off\nhttps-redirect = off\n", "");
    assert_problems(
        "[server]\nforwarded-from = 10.0.0.0/8\n" SITE "hsts = 1h\nhttps-redirect = on\n", "");
}

static void http_2_has_a_setting_for_each_kind_of_address(void **state)
{
    (void)state;
    struct config_store *store =
        read_text("[server]\nlisten = https://localhost:1, localhost:2\nh2c = on\nhttp2 = on\n"
                  "http2-streams = 7\n" SITE);
    assert_int_equal(config_read_errors(store) + config_read_warnings(store), 0);
    assert_true(config_read_result(store)->http2);
    assert_true(config_read_result(store)->h2c);
    assert_int_equal(config_read_result(store)->http2_streams, 7);
    config_read_free(store);

    assert_problems("[server]\nhttp2 = on\n" SITE,
                    "weir.conf:2: warning: http2: this has no effect: no address of `listen` "
                    "begins with https://\n");
    assert_problems("[server]\nhttp2 = off\nh2c = on\n" SITE, "");
    assert_problems("[server]\nlisten = https://localhost:1\nh2c = on\n" SITE,
                    "weir.conf:3: warning: h2c: this has no effect: every address of `listen` "
                    "begins with https://; the setting for these is http2\n");
    assert_problems("[server]\nlisten = https://localhost:1\nhttp2 = off\nh2c = off\n" SITE, "");
    assert_problems("[server]\nhttp2-streams = 0\n" SITE,
                    "weir.conf:2: error: http2-streams: `0` is not a number from 1 to 100\n");
    assert_problems("[server]\nhttp2-streams = 101\n" SITE,
                    "weir.conf:2: error: http2-streams: `101` is not a number from 1 to 100\n");
}

#define PASSWORD "stats-password = $5$rounds=1000$weirtest$SeIwQP.s2vhguhsRY0WfG8VVjmqPANDXQPq6i\n"

static void the_statistics_page_uses_the_certificates_of_sites(void **state)
{
    (void)state;
    assert_problems("[server]\nstats-listen = https://localhost:8081\n" SITE PAIR, "");
    assert_problems("[server]\nstats-listen = https://localhost:8081\n" SITE, "");
    assert_problems("[server]\n" PASSWORD "stats-listen = https://*:8081\n" SITE,
                    "weir.conf:3: error: stats-listen: `https://*:8081` can be reached from other "
                    "machines, so a site needs the settings tls-certificate and tls-key; only "
                    "https://localhost works without\n");
    assert_problems("[server]\nstats = off\nstats-listen = https://localhost:8081\n" SITE PAIR,
                    "weir.conf:6: warning: tls-certificate: this has no effect: no address of "
                    "`listen` begins with https://\n");
}

static void hsts_is_sent_once(void **state)
{
    (void)state;
    assert_problems(HTTPS SITE PAIR "hsts = 1h\nheader = strict-transport-security: max-age=1\n",
                    "weir.conf:8: error: header: the setting `hsts` sends "
                    "Strict-Transport-Security; remove one\n");
    assert_problems(HTTPS SITE PAIR "header = Strict-Transport-Security: max-age=1\n", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_site_has_its_certificates_in_order),
        cmocka_unit_test(without_settings_https_is_off),
        cmocka_unit_test(only_addresses_of_this_machine_need_no_certificate),
        cmocka_unit_test(reports_an_address_with_two_schemes),
        cmocka_unit_test(reports_an_address_that_is_a_part_of_another),
        cmocka_unit_test(reports_keys_without_their_certificate),
        cmocka_unit_test(reports_a_certificate_without_its_key),
        cmocka_unit_test(reports_files_that_are_not_there),
        cmocka_unit_test(a_key_must_be_secret),
        cmocka_unit_test(reports_settings_that_need_an_https_address),
        cmocka_unit_test(http_2_has_a_setting_for_each_kind_of_address),
        cmocka_unit_test(the_statistics_page_uses_the_certificates_of_sites),
        cmocka_unit_test(hsts_is_sent_once),
    };
    return cmocka_run_group_tests(tests, make_pairs, remove_pairs);
}
