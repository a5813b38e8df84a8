/* SPDX-License-Identifier: MIT
 *
 * Whole configurations: file, environment and command line together, in a
 * folder of their own that has the sites site/ and other/.
 */
#include "unit/config/folder.h"

#include <fcntl.h>
#include <limits.h>

static const char *const folders[] = { "site/.git", "site/errors", "other" };

static int make_folders(void **state)
{
    if (make_folder(state) < 0)
        return -1;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        mkdir(folders[i], 0755);
    return 0;
}

static int remove_folders(void **state)
{
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        rmdir(folders[i]);
    return remove_folder(state);
}

/* Reads and insists that there are no errors. */
static void give_a_gibibyte(struct config *config)
{
    config->cache_size_bytes = UINT64_C(1) << 30;
    config->cache_memory_bytes = UINT64_C(8) << 30;
}

static struct config_store *read_good(const struct config_request *request)
{
    struct config_store *store = config_read(request);
    if (config_read_errors(store) > 0) {
        char *problems = problems_of(store);
        fail_msg("unexpected: %s", problems);
    }
    return store;
}

static void uses_the_defaults(void **state)
{
    (void)state;
    write_file("weir.conf", SITE);
    struct config_request request = { .file = "weir.conf", .output_is_terminal = true };
    struct config_store *store = read_good(&request);
    const struct config *config = config_read_result(store);
    assert_string_equal(config->listen[0], "127.0.0.1:8080");
    assert_string_equal(config->listen[1], "[::1]:8080");
    assert_null(config->listen[2]);
    assert_true(config->listen_by_default);
    assert_string_equal(config->model, "auto");
    assert_int_equal(config->workers, 0);
    assert_int_equal(config->threads, 0);
    assert_int_equal(config->connections, 0);
    assert_string_equal(config->access_log, "off");
    assert_string_equal(config->log_format, "combined");
    assert_string_equal(config->error_log, "-");
    assert_string_equal(config->log_level, "info");
    assert_int_equal(config->cache_size_bytes, 64 << 20);
    assert_int_equal(config->cache_entries, 65536);
    assert_string_equal(config->cache_policy, "sieve");
    assert_int_equal(config->cache_file_max_bytes, 64 << 10);
    assert_int_equal(config->header_timeout_ns, UINT64_C(10000000000));
    assert_int_equal(config->body_timeout_ns, UINT64_C(30000000000));
    assert_int_equal(config->idle_timeout_ns, UINT64_C(65000000000));
    assert_int_equal(config->send_timeout_ns, UINT64_C(60000000000));
    assert_int_equal(config->drain_timeout_ns, UINT64_C(30000000000));
    assert_null(config->congestion);
    assert_string_equal(config->pool_policy, "park");
    assert_int_equal(config->pool_queue, 16384);
    assert_int_equal(config->listings, 16);
    assert_null(config->user);
    assert_true(config->server_header);
    assert_int_equal(config->site_count, 1);
    const struct config_site *site = &config->sites[0];
    assert_string_equal(site->name, "a");
    assert_null(site->hosts[0]);
    assert_string_equal(site->root, "site");
    assert_string_equal(site->index[0], "index.html");
    assert_null(site->index[1]);
    assert_null(site->fallback);
    assert_null(site->error_pages);
    assert_null(site->headers[0]);
    assert_false(site->listing);
    assert_true(site->precompressed);
    assert_false(site->hidden);
    config_read_free(store);
}

static void a_file_can_set_everything(void **state)
{
    (void)state;
    write_file("weir.conf", "[server]\n"
                            "listen = *:80, [::]:81\n"
                            "listen = unix:/run/weir.sock\n"
                            "model = epoll\nworkers = 2\nthreads = 3\nconnections = 9000\n"
                            "access-log = access.log\nlog-format = json\nerror-log = -\n"
                            "log-level = debug\ncache-size = 1G\ncache-entries = 5\n"
                            "cache-policy = lru\ncache-file-max = 1K\nheader-timeout = 1s\n"
                            "body-timeout = 2s\nidle-timeout = 3s\nsend-timeout = 4s\n"
                            "drain-timeout = 5s\nserver-header = off\n"
                            "pool-policy = sticky\npool-queue = 7\n"
                            "[site a]\n"
                            "host = a.example, *.A.example\nhost = b.example\n"
                            "root = site\nindex = start.html, index.html\n"
                            "spa = /index.html\nerror-pages = site/errors\nlisting = on\n"
                            "precompressed = off\nhidden = off\n"
                            "header = X-One: 1\nheader = X-Two: 2, 3\n"
                            "[site b]\nroot = other\n");
    struct config_request request = { .file = "weir.conf" };
    struct config_store *store = read_good(&request);
    const struct config *config = config_read_result(store);
    assert_string_equal(config->listen[2], "unix:/run/weir.sock");
    assert_null(config->listen[3]);
    assert_false(config->listen_by_default);
    assert_string_equal(config->model, "epoll");
    assert_int_equal(config->connections, 9000);
    assert_string_equal(config->access_log, "access.log");
    assert_string_equal(config->cache_policy, "lru");
    assert_int_equal(config->drain_timeout_ns, UINT64_C(5000000000));
    assert_string_equal(config->pool_policy, "sticky");
    assert_int_equal(config->pool_queue, 7);
    assert_false(config->server_header);
    assert_int_equal(config->site_count, 2);
    const struct config_site *site = &config->sites[0];
    assert_string_equal(site->hosts[1], "*.a.example");
    assert_string_equal(site->hosts[2], "b.example");
    assert_null(site->hosts[3]);
    assert_string_equal(site->index[0], "start.html");
    assert_string_equal(site->fallback, "index.html");
    assert_string_equal(site->error_pages, "site/errors");
    assert_string_equal(site->headers[1], "X-Two: 2, 3");
    assert_true(site->listing);
    assert_false(site->precompressed);
    config_read_free(store);
}

static void flags_win_over_variables_and_variables_over_the_file(void **state)
{
    (void)state;
    write_file("weir.conf", "[server]\nlisten = 1000, 1001\ncache-size = 1M\nworkers = 1\n"
                            "threads = 1\n" SITE);
    static const char *const environment[] = { "WEIR_CACHE_SIZE=2M",
                                               "WEIR_WORKERS=2",
                                               "WEIR_LISTEN=2000, 2001",
                                               "WEIR_MODEL=",
                                               "WEIR_SOMETHING_ELSE=5",
                                               "PATH=/bin",
                                               NULL };
    static const struct config_flag flags[] = {
        { "workers", "9" },
        { "workers", "3" },
        { "listen", "3000" },
        { "listen", "3001" },
    };
    struct config_request request = {
        .file = "weir.conf", .flags = flags, .flag_count = 4, .environment = environment
    };
    struct config_store *store = read_good(&request);
    const struct config *config = config_read_result(store);
    assert_int_equal(config->threads, 1);
    assert_int_equal(config->cache_size_bytes, 2 << 20);
    assert_int_equal(config->workers, 3);
    assert_string_equal(config->listen[0], "127.0.0.1:3000");
    assert_string_equal(config->listen[1], "127.0.0.1:3001");
    assert_null(config->listen[2]);
    assert_string_equal(config->model, "auto");
    assert_int_equal(config_read_warnings(store), 0);
    config_read_free(store);
}

static void a_folder_alone_has_defaults_for_a_terminal(void **state)
{
    (void)state;
    struct config_request request = { .folder = "site", .output_is_terminal = true };
    struct config_store *store = read_good(&request);
    const struct config *config = config_read_result(store);
    assert_string_equal(config->access_log, "-");
    assert_int_equal(config->site_count, 1);
    assert_string_equal(config->sites[0].name, "default");
    assert_string_equal(config->sites[0].root, "site");
    assert_true(config->sites[0].listing);
    config_read_free(store);

    request.output_is_terminal = false;
    store = read_good(&request);
    assert_string_equal(config_read_result(store)->access_log, "off");
    config_read_free(store);
}

static void site_flags_apply_to_the_folder(void **state)
{
    (void)state;
    static const struct config_flag flags[] = {
        { "listing", "off" },
        { "header", "X: 1" },
        { "header", "Y: 2, 3" },
        { "spa", "index.html" },
    };
    struct config_request request = { .folder = "site", .flags = flags, .flag_count = 4 };
    struct config_store *store = read_good(&request);
    const struct config_site *site = &config_read_result(store)->sites[0];
    assert_false(site->listing);
    assert_string_equal(site->headers[1], "Y: 2, 3");
    assert_string_equal(site->fallback, "index.html");
    config_read_free(store);

    write_file("weir.conf", SITE);
    request = (struct config_request){ .file = "weir.conf", .flags = flags, .flag_count = 1 };
    store = config_read(&request);
    char *problems = problems_of(store);
    assert_non_null(strstr(problems, "weir: --listing: applies to a folder on the command line"));
    assert_int_equal(config_read_flag_errors(store), 1);
    free(problems);
    config_read_free(store);
}

static void a_folder_beside_a_file_answers_for_all_other_hosts(void **state)
{
    (void)state;
    write_file("weir.conf", "[site a]\nhost = a.example\nroot = other\n");
    struct config_request request = { .file = "weir.conf",
                                      .folder = "site",
                                      .output_is_terminal = true };
    struct config_store *store = read_good(&request);
    const struct config *config = config_read_result(store);
    assert_int_equal(config->site_count, 2);
    assert_string_equal(config->sites[0].name, "default");
    assert_string_equal(config->sites[1].name, "a");
    assert_string_equal(config->access_log, "off");
    config_read_free(store);

    write_file("weir.conf", SITE);
    store = config_read(&request);
    char *problems = problems_of(store);
    assert_string_equal(problems, "weir.conf:1: error: [site a] has no `host`, and neither has the "
                                  "folder (on the command line): both would answer any host; give "
                                  "this one a `host`\n");
    free(problems);
    config_read_free(store);
}

static void suggests_the_name_for_a_misspelt_one(void **state)
{
    (void)state;
    assert_problems("[server]\nlisen = 80\n[sit b]\nroot = /nowhere\n" SITE "indx = a\n",
                    "weir.conf:2: error: unknown setting `lisen`; did you mean `listen`?\n"
                    "weir.conf:3: error: unknown section [sit b]; did you mean [site NAME]?\n"
                    "weir.conf:7: error: unknown setting `indx`; did you mean `index`?\n");
    assert_problems("[server]\nroot = site\n" SITE "cache-size = 5\nfrobnicate = 1\n[other]\n",
                    "weir.conf:2: error: `root` does not belong in [server]; it goes under [site "
                    "NAME]\n"
                    "weir.conf:5: error: `cache-size` does not belong in a site; it goes under "
                    "[server]\n"
                    "weir.conf:6: error: unknown setting `frobnicate`; a site has none like it\n"
                    "weir.conf:7: error: unknown section [other]; there are [server], [site NAME] "
                    "and [path PATTERN]\n");
    assert_problems("listen = 80\n" SITE, "weir.conf:1: error: `listen` stands before any section; "
                                          "it goes under [server]\n");
}

static void reports_duplicates(void **state)
{
    (void)state;
    assert_problems("[server]\nworkers = 1\nworkers = 2\nlisten = 80, 80\nlisten = 0, 0\n[server]\n"
                    "[site a]\nroot = site\nhost = x, X\n[site a]\nroot = /nowhere\n",
                    "weir.conf:3: error: workers is set twice (first on line 2)\n"
                    "weir.conf:4: error: listen: `127.0.0.1:80` is there twice (first on line 4)\n"
                    "weir.conf:6: error: [server] is there twice (first on line 1)\n"
                    "weir.conf:9: error: host: `x` is there twice (first on line 9)\n"
                    "weir.conf:10: error: [site a] is there twice (first on line 7)\n");
}

static void reports_errors_below_wrong_headings(void **state)
{
    (void)state;
    assert_problems(
        SITE "[site b c]\nlisting = x\n[path /x]\nlisting = x\n[path /x]\nhidden = x\n"
             "[path nope]\nhidden = x\n[site a]\nlisting = x\n[sit d]\nlisting = x\n"
             "[pth /]\nhidden = x\n[servr]\nworkers = x\n",
        "weir.conf:3: error: `b c` is not a site's name; use letters, digits and . _ -\n"
        "weir.conf:4: error: listing: `x` is not on or off\n"
        "weir.conf:6: error: listing: `x` is not on or off\n"
        "weir.conf:7: error: [path /x] is there twice in [site b c] (first on line 5)\n"
        "weir.conf:8: error: hidden: `x` is not on or off\n"
        "weir.conf:9: error: [path nope]: the pattern does not begin with a slash; for any folder "
        "write `/**/` before the name\n"
        "weir.conf:10: error: hidden: `x` is not on or off\n"
        "weir.conf:11: error: [site a] is there twice (first on line 1)\n"
        "weir.conf:12: error: listing: `x` is not on or off\n"
        "weir.conf:13: error: unknown section [sit d]; did you mean [site NAME]?\n"
        "weir.conf:14: error: listing: `x` is not on or off\n"
        "weir.conf:15: error: unknown section [pth /]; did you mean [path PATTERN]?\n"
        "weir.conf:16: error: hidden: `x` is not on or off\n"
        "weir.conf:17: error: unknown section [servr]; did you mean [server]?\n"
        "weir.conf:18: error: workers: `x` is not a number from 1 to 1024, or auto\n");
}

/* The settings below would count for the section above, where they are there already. */
static void begins_a_section_at_a_heading_without_an_end(void **state)
{
    (void)state;
    assert_problems(SITE "[site b\nroot = site\nhost = b\n[site c] x\nroot = site\nhost = c\n",
                    "weir.conf:3: error: a section's name ends with `]`\n"
                    "weir.conf:6: error: nothing may follow the `]` of a section\n");
}

static void reports_sites_with_the_same_host(void **state)
{
    (void)state;
    assert_problems("[site a]\nroot = site\nhost = x.org, y.org\n[site b]\nroot = other\n"
                    "host = z.org, Y.ORG\n",
                    "weir.conf:6: error: host: `y.org` already belongs to site a (line 3)\n");
    assert_problems("[site a]\nroot = site\n[site b]\nroot = other\n",
                    "weir.conf:3: error: [site b] has no `host`, and neither has a (line 1): both "
                    "would answer any host; give this one a `host`\n");
}

static void reports_sites_without_a_name_or_a_root(void **state)
{
    (void)state;
    assert_problems("[site]\n[site a/b]\n[site a]\nhost = a\n",
                    "weir.conf:1: error: a site needs a name, as in [site docs]\n"
                    "weir.conf:2: error: `a/b` is not a site's name; use letters, digits and . _ "
                    "-\n"
                    "weir.conf:3: error: [site a] has no root; write `root = /srv/www` or the like "
                    "below it\n");
    assert_problems("", "weir.conf: error: there is nothing to serve; add a section [site NAME] "
                        "with a `root`\n");
}

static void reports_folders_that_cannot_be_served(void **state)
{
    (void)state;
    assert_problems(
        "[site a]\nroot = nowhere\n[site b]\nroot = site/index.html\nhost = b\n"
        "[site c]\nroot = site\nhost = c\nerror-pages = nowhere\nspa = app.html\n"
        "[site d]\nroot = site\nhost = d\nspa = errors\n",
        "weir.conf:2: error: root: `nowhere` cannot be served: there is no such "
        "folder\n"
        "weir.conf:4: error: root: `site/index.html` is a file; name its "
        "folder\n"
        "weir.conf:9: error: error-pages: `nowhere` cannot be served: there is no such "
        "folder\n"
        "weir.conf:10: error: spa: `site/app.html` cannot be served: there is no such file\n"
        "weir.conf:14: error: spa: `site/errors` is not a file\n");
    assert_problems("[server]\naccess-log = nowhere/a.log\nerror-log = other\n" SITE,
                    "weir.conf:2: error: access-log: the folder of `nowhere/a.log` cannot be "
                    "reached: No such file or directory\n"
                    "weir.conf:3: error: error-log: `other` is a folder; name a file in it\n");
}

static void a_root_that_is_refused_is_not_missing(void **state)
{
    (void)state;
    assert_problems("[site a]\nroot = ~/www\n",
                    "weir.conf:2: error: root: `~` is not replaced here; write the whole path\n");
}

static void explains_lists_that_are_written_as_for_nginx(void **state)
{
    (void)state;
    assert_problems("[site a]\nroot = site\nindex = index.html index.htm\n"
                    "[path /a]\nindex = a b\n",
                    "weir.conf:3: warning: index: `index.html index.htm` is one name with a space; "
                    "between several names write commas\n"
                    "weir.conf:5: warning: index: `a b` is one name with a space; between several "
                    "names write commas\n");
    assert_problems("[site a]\nroot = site\nhost = a.org b.org\n",
                    "weir.conf:3: error: host: `a.org b.org` is not the name of a host; between "
                    "several values write commas, not spaces\n");
    assert_problems("[site a]\nroot = site\n[path /a]\ndeny = 10.0.0.0/8 fd00::/8\n",
                    "weir.conf:4: error: deny: `10.0.0.0/8 fd00::/8` ends without a number of bits "
                    "from 0 to 32; between several values write commas, not spaces\n");
}

static void warns_of_a_network_that_is_written_as_an_address_of_it(void **state)
{
    (void)state;
#define WHOLE \
    "covers a whole network; write zeros behind the bits that count, or one address " \
    "without /\n"
    assert_problems("[server]\naddress-exempt = 192.0.2.0/24, 192.0.2.7/24, 10.0.0.1, fd00::/8\n"
                    "[site a]\nroot = site\n[path /a]\ndeny = fd00::1/64, ::1/128, all\n",
                    "weir.conf:2: warning: address-exempt: `192.0.2.7/24` " WHOLE
                    "weir.conf:6: warning: deny: `fd00::1/64` " WHOLE);
}

static void a_setting_of_server_and_paths_belongs_to_the_paths_of_a_site(void **state)
{
    (void)state;
    assert_problems("[site a]\nroot = site\naddress-request-rate = 5\n",
                    "weir.conf:3: error: `address-request-rate` does not belong in a site; it goes "
                    "under [path PATTERN]\n");
}

static void reports_a_folder_without_read_permission(void **state)
{
    (void)state;
#define CURE "give the right with chmod or setfacl, or start weir as another user\n"
    if (geteuid() == 0)
        skip(); /* nothing is forbidden to root */
    assert_int_equal(chmod("other", 0311), 0);
    assert_problems("[site a]\nroot = other\n", "");
    assert_problems("[site a]\nroot = other\nlisting = on\n",
                    "weir.conf:2: error: root: `other` cannot be served: this user may not list "
                    "other; " CURE);
    assert_int_equal(chmod("other", 0), 0);
    assert_problems("[site a]\nroot = other\n",
                    "weir.conf:2: error: root: `other` cannot be served: this user may not enter "
                    "other; " CURE);
    assert_problems("[site a]\nroot = other/below\n",
                    "weir.conf:2: error: root: `other/below` cannot be served: this user may not "
                    "enter other; " CURE);
    assert_int_equal(chmod("other", 0755), 0);
}

static void warns_of_values_that_are_rarely_intended(void **state)
{
    (void)state;
    assert_problems("[server]\nidle-timeout = 0\ndrain-timeout = 0s\ncache-file-max = 9M\n"
                    "access-log = site/access.log\nlisten = *:80\nuser = root\n"
                    "[site a]\nroot = site\nhidden = on\nlisting = on\n",
                    "weir.conf:2: warning: idle-timeout: with 0 there is no limit: clients that "
                    "send nothing keep their connections open\n"
                    "weir.conf:3: warning: drain-timeout: with 0, a stop or reload cuts off the "
                    "answers under way\n"
                    "weir.conf:4: warning: cache-file-max: one answer can use at most an eighth "
                    "of cache-size, here 8388608 bytes\n"
                    "weir.conf:5: warning: access-log: `site/access.log` is inside the root of "
                    "[site a], so clients can read it\n"
                    "weir.conf:7: warning: user: `root` is the superuser; a user for weir alone "
                    "is safer\n"
                    "weir.conf:10: warning: hidden: this setting also serves site/.git\n"
                    "weir.conf:11: warning: listing is on, and *:80 is open to other machines: "
                    "they can see the name of every file\n");
    assert_problems("[site a]\nroot = /\n",
                    "weir.conf:2: warning: root: everything in / that this user can read is "
                    "served\n");
    assert_problems("[site a]\nroot = site\nhost = a.test\n[site b]\nroot = site\nhost = b.test\n",
                    "weir.conf:1: warning: every site has a `host`, so a request for any other "
                    "host, or for the address itself, gets 421; a site without `host` would answer "
                    "it\n");
}

static void hints_show_what_a_file_accepts(void **state)
{
    (void)state;
    assert_problems(
        "[site a]\nroot = site\nadd_header X b;\nheader X: b\nalias /data/files/;\n",
        "weir.conf:3: error: `add_header` is called `header` here; write `header = NAME: VALUE` "
        "under [site NAME]\n"
        "weir.conf:4: error: a value follows `=`, and no `;` ends it; write `header = NAME: "
        "VALUE`\n"
        "weir.conf:5: error: there is no `alias` here; weir serves no folder outside of a root; "
        "make it the root of another [site], or mount it below the root (mount --bind); for a "
        "path below the root write `rewrite = TARGET` under [path PATTERN]\n");
}

static void the_pid_file_is_the_file_of_no_log(void **state)
{
    (void)state;
    assert_problems(
        "[server]\npid-file = x\nerror-log = x\naccess-log = y\n[site a]\nroot = site\n",
        "weir.conf:2: error: pid-file: `x` is the file of `error-log`, too; choose "
        "another file\n");
    assert_problems(
        "[server]\npid-file = y\nerror-log = x\naccess-log = y\n[site a]\nroot = site\n",
        "weir.conf:2: error: pid-file: `y` is the file of `access-log`, too; choose "
        "another file\n");
}

static void a_unix_socket_is_in_the_place_of_no_other_file(void **state)
{
    (void)state;
    assert_problems(
        "[server]\nlisten = unix:none, unix:site\nstats-listen = unix:site/\n"
        "stats-listen = unix:site/none\n[site a]\nroot = site\n",
        "weir.conf:2: error: listen: `unix:site` names a file that is no socket; "
        "remove the file, or choose another path\n"
        "weir.conf:3: error: stats-listen: `unix:site/` is a folder; name a file in it\n");
}

/* They have `=` or `:` somewhere, as if a name were before it. */
static void hints_for_lines_of_other_servers_with_a_sign_of_equality(void **state)
{
    (void)state;
    assert_problems(
        "[server]\nlisten = 80\nlimit_req_zone $x zone=a:10m rate=1r/s;\n[site a]\nroot = site\n"
        "if ($request_method = PUT) {\nhttp://a.test, http://b.test {\n<VirtualHost *:80>\n"
        "Header set Cache-Control \"max-age=60\"\nRedirect 301 /a https://a.test/\ninternal;\n",
        "weir.conf:3: error: `limit_req_zone` is called `address-request-rate` here; write "
        "`address-request-rate = N` under [server]\n"
        "weir.conf:6: error: there is no `if` here; the rules for a path stand under a line [path "
        "PATTERN], and have no conditions\n"
        "weir.conf:7: error: there are no braces; a line [server] or [site NAME] begins a section, "
        "which ends where the next one begins\n"
        "weir.conf:8: error: a line [site NAME] or [path PATTERN] begins a section, which ends "
        "where the next one begins\n"
        "weir.conf:9: error: `Header` is called `header` here; write `header = NAME: VALUE` under "
        "[site NAME]\n"
        "weir.conf:10: error: `Redirect` is called `redirect` here; write `redirect = STATUS "
        "TARGET` under [path PATTERN]\n"
        "weir.conf:11: error: there is no `internal` here; pages of `error-pages` need no such "
        "line; remove it\n");
}

static void hints_how_to_write_lines_of_other_servers(void **state)
{
    (void)state;
    assert_problems(
        "[server]\nlisten 80;\nlisten [::1]:80;\nworker_processes 4;\nhttp {\n}\n"
        "[site a]\nroot = site\nserver_name a.test;\nServerName = a.test\n"
        "autoindex: on\nuser www-data;\n",
        "weir.conf:2: error: a value follows `=`, and no `;` ends it; write `listen = "
        "ADDRESS`\n"
        "weir.conf:3: error: a value follows `=`, and no `;` ends it; write `listen = "
        "ADDRESS`\n"
        "weir.conf:4: error: `worker_processes` is called `workers` here; write "
        "`workers = N|auto` under [server]\n"
        "weir.conf:5: error: there are no braces; a line [server] or [site NAME] begins "
        "a section, which ends where the next one begins\n"
        "weir.conf:6: error: there are no braces; a line [server] or [site NAME] begins "
        "a section, which ends where the next one begins\n"
        "weir.conf:9: error: `server_name` is called `host` here; write `host = HOST` "
        "under [site NAME]\n"
        "weir.conf:10: error: `ServerName` is called `host` here; write `host = HOST` "
        "under [site NAME]\n"
        "weir.conf:11: error: `autoindex` is called `listing` here; write `listing = "
        "on|off` under [site NAME]\n"
        "weir.conf:12: error: a value follows `=`, and no `;` ends it; write `user = "
        "USER`\n");
    assert_problems(
        "[server]\nlisten = 80\n[site a]\nroot = site\nfile.dir: /srv\nssl.pemfile = a.pem\n"
        "file_server\ncertificate = a.pem\n",
        "weir.conf:5: error: `file.dir` is called `root` here; write `root = DIR` under "
        "[site NAME]\n"
        "weir.conf:6: error: `ssl.pemfile` is called `tls-certificate` here; write "
        "`tls-certificate = FILE` under [site NAME]\n"
        "weir.conf:7: error: there is no `file_server` here; weir always serves files; write "
        "`root = DIR` under [site NAME]\n"
        "weir.conf:8: error: unknown setting `certificate`; did you mean `tls-certificate`?\n");
    assert_problems(
        "location / { try_files $uri =404; }\n[server]\nlisten = 80\nsendfile on;\n"
        "[site a]\nroot = site\naccess_log = off\nexpires 1y;\nreturn 301 /new/;\ngzip = on\n",
        "weir.conf:1: error: there is no `location` here; the rules for a path stand under a "
        "line [path PATTERN], such as [path /images/**]\n"
        "weir.conf:4: error: there is no `sendfile` here; weir chooses the fastest way by itself; "
        "remove it\n"
        "weir.conf:7: error: `access_log` is called `access-log` here; write `access-log = "
        "FILE|-|journal|syslog:|off` under [server]\n"
        "weir.conf:8: error: there is no `expires` here; write `cache-control = "
        "max-age=SECONDS` under [path PATTERN]\n"
        "weir.conf:9: error: there is no `return` here; write `redirect = STATUS TARGET` or "
        "`status = "
        "STATUS` under [path PATTERN]\n"
        "weir.conf:10: error: `gzip` is called `compress` here; write `compress = on|off` under "
        "[site NAME]\n");
    assert_problems("[server]\nlisten = 80;\naccess-log = \"site.log\"\n[site a]\nroot = 'site';\n"
                    "header = X: \"a\";\n",
                    "weir.conf:2: error: listen: a value has no quotes, and no `;` ends it; write "
                    "`listen = 80`\n"
                    "weir.conf:3: error: access-log: a value has no quotes, and no `;` ends it; "
                    "write `access-log = site.log`\n"
                    "weir.conf:5: error: root: a value has no quotes, and no `;` ends it; write "
                    "`root = site`\n");
    assert_problems(
        "[server]\nworkers = 2 # two\nerror-log = x.log\t#mine\n[site a]\nroot = site\n"
        "header = X: a #b\n",
        "weir.conf:2: warning: workers: a comment has a line of its own; here `#` is a "
        "part of the value\n"
        "weir.conf:3: warning: error-log: a comment has a line of its own; here `#` is a "
        "part of the value\n"
        "weir.conf:2: error: workers: `2 # two` is not a number from 1 to 1024, or "
        "auto\n");
}

static void assert_label(const struct config_store *store, enum config_setting_place place,
                         size_t index, const char *expected)
{
    char label[CONFIG_ORIGIN_MAX];
    config_read_label(store, place, index, label);
    assert_string_equal(label, expected);
}

static void a_message_about_a_value_begins_with_its_place(void **state)
{
    (void)state;
    write_file("weir.conf", "[server]\nlisten = 81, 82\nlisten = 83\n" SITE);
    const char *environment[] = { "WEIR_PID_FILE=pid", NULL };
    struct config_flag flags[] = { { "access-log", "-" } };
    struct config_store *store = read_good(&(struct config_request){
        .file = "weir.conf", .environment = environment, .flags = flags, .flag_count = 1 });
    assert_label(store, SETTING_listen, 1, "weir.conf:2: listen: ");
    assert_label(store, SETTING_listen, 2, "weir.conf:3: listen: ");
    assert_label(store, SETTING_listen, 3, "");
    assert_label(store, SETTING_pid_file, 0, "WEIR_PID_FILE: ");
    assert_label(store, SETTING_access_log, 0, "--access-log: ");
    assert_label(store, SETTING_error_log, 0, "");
    assert_label(store, SETTING_user, 0, "");
    config_read_free(store);
}

static void warns_of_a_home_folder_and_of_misspelt_variables(void **state)
{
    (void)state;
    char home[512];
    snprintf(home, sizeof(home), "HOME=%s/site", top);
    const char *const environment[] = { home, "WEIR_CACHE_SIZ=1M", NULL };
    struct config_request request = { .folder = "site", .environment = environment };
    struct config_store *store = read_good(&request);
    char *problems = problems_of(store);
    assert_string_equal(problems, "weir: warning: WEIR_CACHE_SIZ: is no setting; did you mean "
                                  "WEIR_CACHE_SIZE?\n"
                                  "weir: warning: site: this is your home folder: everything in it "
                                  "is served\n");
    free(problems);
    config_read_free(store);
}

static void names_the_source_of_an_error_outside_the_file(void **state)
{
    (void)state;
    static const char *const environment[] = { "WEIR_WORKERS=many", NULL };
    static const struct config_flag flags[] = { { "cache-size", "64Q" },
                                                { "header", "a: \x1b[1m" } };
    struct config_request request = {
        .folder = "nowhere", .environment = environment, .flags = flags, .flag_count = 2
    };
    struct config_store *store = config_read(&request);
    char *problems = problems_of(store);
    assert_string_equal(problems,
                        "weir: WEIR_WORKERS: `many` is not a number from 1 to 1024, or auto\n"
                        "weir: --cache-size: `64Q` is not a size; write a number of bytes, or "
                        "256K, 64M, 1G\n"
                        "weir: --header: the value of `a` has a control byte, such as a line "
                        "break\n"
                        "weir: nowhere: cannot be served: there is no such folder\n");
    assert_int_equal(config_read_errors(store), 4);
    assert_int_equal(config_read_flag_errors(store), 3);
    free(problems);
    config_read_free(store);
}

static void shows_twenty_errors_in_order_and_counts_the_rest(void **state)
{
    (void)state;
    char text[4096] = "[server]\n";
    size_t len = strlen(text);
    for (int i = 0; i < 30; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "nonsense\nxyzzy = %d\n", i);
    snprintf(text + len, sizeof(text) - len, SITE);
    struct config_store *store = read_text(text);
    char *problems = problems_of(store);
    assert_int_equal(config_read_errors(store), 60);
    unsigned lines = 0;
    char *rest = problems;
    for (char *end; (end = strchr(rest, '\n')) != NULL; rest = end + 1) {
        char expected[32];
        *end = 0;
        snprintf(expected, sizeof(expected), "weir.conf:%u: error: ", lines + 2);
        if (lines++ < 20)
            assert_memory_equal(rest, expected, strlen(expected));
        else
            assert_string_equal(rest, "and 40 more errors");
    }
    assert_int_equal(lines, 21);
    free(problems);
    config_read_free(store);
}

static void control_bytes_do_not_reach_the_terminal(void **state)
{
    (void)state;
    assert_problems("[server]\ncache-policy = \x1b[31m\x07\n" SITE,
                    "weir.conf:2: error: cache-policy: `?[31m?` is not sieve or lru\n");
}

static void limits_the_header_lines_of_a_site(void **state)
{
    (void)state;
    char text[8192] = SITE;
    size_t len = strlen(text);
    for (int i = 0; i < 5; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "header = X-%d: %01000d\n", i, 0);
    assert_problems(text, "weir.conf:7: error: header: the header lines of the site are more than "
                          "4096 bytes\n");
}

static void paths_begin_at_the_folder_of_the_file(void **state)
{
    (void)state;
    write_file("site/weir.conf", "[site a]\nroot = errors\nerror-pages = ../other\n");
    struct config_request request = { .file = "site/weir.conf" };
    struct config_store *store = read_good(&request);
    const struct config_site *site = &config_read_result(store)->sites[0];
    assert_string_equal(site->root, "site/errors");
    char other[PATH_MAX];
    assert_non_null(realpath("other", other));
    assert_string_equal(site->error_pages, other);
    config_read_free(store);
    unlink("site/weir.conf");
}

static void a_missing_file_is_an_error_of_the_configuration(void **state)
{
    (void)state;
    struct config_request request = { .file = "nowhere.conf" };
    struct config_store *store = config_read(&request);
    char *problems = problems_of(store);
    assert_string_equal(problems,
                        "nowhere.conf: error: cannot be read: No such file or directory\n");
    assert_int_equal(config_read_flag_errors(store), 0);
    free(problems);
    config_read_free(store);
    config_read_free(NULL);
}

/* Finds the line of `name` in section `section`; it must end with `value` and `origin`. */
static void assert_explained(const char *text, const char *section, const char *name,
                             const char *value, const char *origin)
{
    const char *at = strstr(text, section);
    char wanted[64];
    assert_non_null(at);
    snprintf(wanted, sizeof(wanted), "\n  %s ", name);
    at = strstr(at, wanted);
    if (!at)
        fail_msg("no %s in %s:\n%s", name, section, text);
    struct span line = span_of(at + 1, strcspn(at + 1, "\n"));
    struct span rest = span_trim(span_skip(line, strlen(wanted) - 1));
    if (!span_starts(rest, span_text(value)))
        fail_msg("%s: `%.*s`, expected `%s`", name, (int)line.len, line.at, value);
    rest = span_trim(span_skip(rest, strlen(value)));
    if (!span_equal(rest, span_text(origin)))
        fail_msg("%s: `%.*s`, expected `%s`", name, (int)line.len, line.at, origin);
}

static void explains_every_value_with_its_origin(void **state)
{
    (void)state;
    write_file("weir.conf", "[server]\nthreads = 4\n\n[site a]\nroot = site\nhost = a.example\n");
    static const char *const environment[] = { "WEIR_CACHE_SIZE=2M", NULL };
    static const struct config_flag flags[] = { { "model", "epoll" }, { "spa", "index.html" } };
    struct config_request request = { .file = "weir.conf",
                                      .folder = "site",
                                      .flags = flags,
                                      .flag_count = 2,
                                      .environment = environment };
    struct config_store *store = read_good(&request);
    char *text = explanation_of(store);
    assert_explained(text, "[server]", "threads", "4", "weir.conf:2");
    assert_explained(text, "[server]", "cache-size", "2M", "environment WEIR_CACHE_SIZE");
    assert_explained(text, "[server]", "model", "epoll", "flag --model");
    assert_explained(text, "[server]", "user", "(weir or nobody)", "default");
    assert_explained(text, "[site default]", "root", "site", "command line");
    assert_explained(text, "[site default]", "spa", "index.html", "flag --spa");
    assert_explained(text, "[site default]", "listing", "on",
                     "default, for a folder on the command line");
    assert_explained(text, "[site a]", "host", "a.example", "weir.conf:6");
    assert_explained(text, "[site a]", "listing", "off", "default");
    const char *user = strstr(text, "\n  user ");
    const char *rate = strstr(text, "\n  address-connection-rate ");
    assert_int_equal(strstr(user, "(weir") - user, strstr(rate, "0 ") - rate); /* one column */
    free(text);
    config_read_free(store);

    request = (struct config_request){ .folder = "site", .output_is_terminal = true };
    store = read_good(&request);
    text = explanation_of(store);
    assert_explained(text, "[server]", "access-log", "-", "default, standard output is a terminal");
    free(text);
    config_read_free(store);
}

static void writes_no_file(void **state)
{
    (void)state;
    write_file("weir.conf", "[server]\naccess-log = a.log\nerror-log = e.log\n"
                            "listen = unix:weir.sock\n" SITE);
    struct config_request request = { .file = "weir.conf" };
    config_read_free(read_good(&request));
    assert_int_equal(access("a.log", F_OK), -1);
    assert_int_equal(access("e.log", F_OK), -1);
    assert_int_equal(access("weir.sock", F_OK), -1);
}

static void the_caller_says_what_an_automatic_cache_size_is(void **state)
{
    (void)state;
    struct config_request request = { .folder = "site", .size_cache = give_a_gibibyte };
    struct config_store *store = read_good(&request);
    assert_int_equal(config_read_result(store)->cache_size_bytes, UINT64_C(1) << 30);
    assert_int_equal(config_read_result(store)->cache_memory_bytes, UINT64_C(8) << 30);
    assert_int_equal(config_read_result(store)->cache_entries, 1 << 19);
    config_read_free(store);
}

static void a_cache_size_that_is_given_is_not_changed(void **state)
{
    (void)state;
    static const struct config_flag flags[] = { { "cache-size", "8G" }, { "cache-entries", "7" } };
    struct config_request request = {
        .folder = "site",
        .flags = flags,
        .flag_count = 1,
        .size_cache = give_a_gibibyte,
    };
    struct config_store *store = read_good(&request);
    assert_int_equal(config_read_result(store)->cache_size_bytes, UINT64_C(8) << 30);
    assert_int_equal(config_read_result(store)->cache_memory_bytes, 0);
    assert_int_equal(config_read_result(store)->cache_entries, 1 << 20);
    config_read_free(store);
    request.flag_count = 2;
    store = read_good(&request);
    assert_int_equal(config_read_result(store)->cache_entries, 7);
    config_read_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_caller_says_what_an_automatic_cache_size_is),
        cmocka_unit_test(a_cache_size_that_is_given_is_not_changed),
        cmocka_unit_test(uses_the_defaults),
        cmocka_unit_test(a_file_can_set_everything),
        cmocka_unit_test(flags_win_over_variables_and_variables_over_the_file),
        cmocka_unit_test(a_folder_alone_has_defaults_for_a_terminal),
        cmocka_unit_test(site_flags_apply_to_the_folder),
        cmocka_unit_test(a_folder_beside_a_file_answers_for_all_other_hosts),
        cmocka_unit_test(suggests_the_name_for_a_misspelt_one),
        cmocka_unit_test(reports_duplicates),
        cmocka_unit_test(reports_errors_below_wrong_headings),
        cmocka_unit_test(begins_a_section_at_a_heading_without_an_end),
        cmocka_unit_test(reports_sites_with_the_same_host),
        cmocka_unit_test(reports_sites_without_a_name_or_a_root),
        cmocka_unit_test(reports_folders_that_cannot_be_served),
        cmocka_unit_test(reports_a_folder_without_read_permission),
        cmocka_unit_test(a_root_that_is_refused_is_not_missing),
        cmocka_unit_test(explains_lists_that_are_written_as_for_nginx),
        cmocka_unit_test(warns_of_a_network_that_is_written_as_an_address_of_it),
        cmocka_unit_test(a_setting_of_server_and_paths_belongs_to_the_paths_of_a_site),
        cmocka_unit_test(warns_of_values_that_are_rarely_intended),
        cmocka_unit_test(hints_show_what_a_file_accepts),
        cmocka_unit_test(the_pid_file_is_the_file_of_no_log),
        cmocka_unit_test(a_unix_socket_is_in_the_place_of_no_other_file),
        cmocka_unit_test(hints_for_lines_of_other_servers_with_a_sign_of_equality),
        cmocka_unit_test(hints_how_to_write_lines_of_other_servers),
        cmocka_unit_test(a_message_about_a_value_begins_with_its_place),
        cmocka_unit_test(warns_of_a_home_folder_and_of_misspelt_variables),
        cmocka_unit_test(names_the_source_of_an_error_outside_the_file),
        cmocka_unit_test(shows_twenty_errors_in_order_and_counts_the_rest),
        cmocka_unit_test(control_bytes_do_not_reach_the_terminal),
        cmocka_unit_test(limits_the_header_lines_of_a_site),
        cmocka_unit_test(paths_begin_at_the_folder_of_the_file),
        cmocka_unit_test(a_missing_file_is_an_error_of_the_configuration),
        cmocka_unit_test(explains_every_value_with_its_origin),
        cmocka_unit_test(writes_no_file),
    };
    return cmocka_run_group_tests(tests, make_folders, remove_folders);
}
