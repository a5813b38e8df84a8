/* SPDX-License-Identifier: MIT
 *
 * Logs that go to a socket: settings, datagrams byte for byte, a receiver that is slow or gone.
 */
#include "log/message.h"

#include "log/error.h"
#include "log/layout.h"
#include "tree.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { WALL_S = 971211336 }; /* 2000-10-10T20:55:36Z */

static struct tree tree;
static struct log_layout layout;

static int make_tree(void **state)
{
    (void)state;
    const struct log_layout_request request = { .format = SPAN("$status $request") };
    char why[LOG_LAYOUT_WHY_MAX];
    tree_make(&tree);
    return log_layout_make(&layout, &request, why) ? 0 : -1;
}

static int remove_tree(void **state)
{
    (void)state;
    tree_remove(&tree);
    return 0;
}

/* A socket that receives, with this name in the tree. */
static int open_receiver(const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    const char *path = tree_absolute(&tree, name);
    assert_true(strlen(path) < sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path));
    (void)unlink(address.sun_path);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* The setting that names this socket; valid until the next call. */
static const char *setting_of(const char *protocol, const char *name)
{
    static char setting[PATH_MAX + 16];
    (void)snprintf(setting, sizeof(setting), "%s:%s", protocol, tree_absolute(&tree, name));
    return setting;
}

static void open_sink(struct log_access_sink *sink, struct log_access *log, const char *protocol,
                      const char *name)
{
    assert_int_equal(log_access_open(sink, setting_of(protocol, name), &layout, NULL), 0);
    assert_int_equal(log_access_start(log, sink), 0);
}

static void add_line(struct log_access *log, const char *request, unsigned status)
{
    const struct log_access_line line = { .request_line = span_text(request), .status = status };
    log_access_add(log, &line, WALL_S);
}

static void assert_datagram(int fd, const char *want)
{
    char got[4096];
    const ssize_t len = recv(fd, got, sizeof(got) - 1, 0);
    assert_true(len >= 0);
    got[len] = '\0';
    assert_string_equal(got, want);
}

static void knows_the_settings_that_name_a_socket(void **state)
{
    (void)state;
    static const struct {
        const char *setting;
        enum log_message kind;
        bool valid;
    } cases[] = {
        { "journal", LOG_MESSAGE_JOURNAL, true },
        { "journal:", LOG_MESSAGE_JOURNAL, true },
        { "journal:/run/systemd/journal.docs/socket", LOG_MESSAGE_JOURNAL, true },
        { "journal:udp://127.0.0.1", LOG_MESSAGE_JOURNAL, false },
        { "journal:socket", LOG_MESSAGE_JOURNAL, false },
        { "journals", LOG_MESSAGE_NONE, false },
        { "syslog", LOG_MESSAGE_NONE, false },
        { "syslog:", LOG_MESSAGE_SYSLOG, true },
        { "syslog:/dev/log", LOG_MESSAGE_SYSLOG, true },
        { "syslog:udp://192.0.2.1", LOG_MESSAGE_SYSLOG, true },
        { "syslog:udp://192.0.2.1:5140", LOG_MESSAGE_SYSLOG, true },
        { "syslog:udp://[2001:db8::1]", LOG_MESSAGE_SYSLOG, true },
        { "syslog:udp://[2001:db8::1]:514", LOG_MESSAGE_SYSLOG, true },
        { "syslog:udp://", LOG_MESSAGE_SYSLOG, false },
        { "syslog:udp://host", LOG_MESSAGE_SYSLOG, false },
        { "syslog:udp://192.0.2.1:0", LOG_MESSAGE_SYSLOG, false },
        { "syslog:udp://192.0.2.1:65536", LOG_MESSAGE_SYSLOG, false },
        { "syslog:udp://192.0.2.1]", LOG_MESSAGE_SYSLOG, false },
        { "syslog:udp://[]", LOG_MESSAGE_SYSLOG, false },
        { "-", LOG_MESSAGE_NONE, false },
        { "/var/log/journal", LOG_MESSAGE_NONE, false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (log_message_kind(cases[i].setting) != cases[i].kind)
            fail_msg("%s", cases[i].setting);
        if (cases[i].kind != LOG_MESSAGE_NONE &&
            log_message_is_valid(cases[i].setting) != cases[i].valid)
            fail_msg("%s", cases[i].setting);
    }
}

static void each_line_is_an_entry_of_the_journal(void **state)
{
    (void)state;
    struct log_access_sink sink;
    struct log_access log;
    const int receiver = open_receiver("journal");
    open_sink(&sink, &log, "journal", "journal");
    add_line(&log, "GET / HTTP/1.1", 200);
    add_line(&log, "a\nPRIORITY=0\n\nMESSAGE=b", 503);
    log_access_flush(&log);
    assert_int_equal(log.len, 0);
    assert_int_equal(log.lines_pending, 0);
    assert_datagram(receiver, "MESSAGE=200 GET\\x20/\\x20HTTP/1.1\nPRIORITY=6\n"
                              "SYSLOG_IDENTIFIER=weir\nWEIR_LOG=access\n");
    assert_datagram(receiver, "MESSAGE=503 a\\x0aPRIORITY=0\\x0a\\x0aMESSAGE=b\nPRIORITY=4\n"
                              "SYSLOG_IDENTIFIER=weir\nWEIR_LOG=access\n");
    log_access_stop(&log);
    log_access_close(&sink);
    assert_int_equal(sink.dropped, 0);
    close(receiver);
}

static void each_line_is_a_message_of_syslog(void **state)
{
    (void)state;
    struct log_access_sink sink;
    struct log_access log;
    char got[512], name[64] = "", want[512];
    const int receiver = open_receiver("log");
    assert_int_equal(gethostname(name, sizeof(name) - 1), 0);
    open_sink(&sink, &log, "syslog", "log");
    add_line(&log, "GET", 200);
    log_access_stop(&log);
    const ssize_t len = recv(receiver, got, sizeof(got) - 1, 0);
    assert_true(len > 0);
    got[len] = '\0';
    (void)snprintf(want, sizeof(want), "<30>1 2000-10-10T20:55:36.000Z %s weir %d access - 200 GET",
                   name, (int)getpid());
    assert_string_equal(got, want);
    log_access_close(&sink);
    close(receiver);
}

/* The test does not read at first. Nothing blocks, and lines without space are counted. */
static void a_full_socket_drops_lines_and_does_not_block(void **state)
{
    (void)state;
    enum { LINES = 20000 };
    struct log_access_sink sink;
    struct log_access log;
    char got[4096];
    uint64_t received = 0;
    const int receiver = open_receiver("journal");
    open_sink(&sink, &log, "journal", "journal");
    for (unsigned i = 0; i < LINES; i++)
        add_line(&log, "GET /a/page/with/a/long/name.html HTTP/1.1", 200);
    assert_true(sink.dropped > 0);
    do {
        log_access_flush(&log);
        while (recv(receiver, got, sizeof(got), 0) > 0)
            received++;
    } while (log.lines_pending > 0);
    assert_int_equal(received + sink.dropped, LINES);
    log_access_stop(&log);
    log_access_close(&sink);
    close(receiver);
}

static void a_receiver_that_is_gone_is_found_again(void **state)
{
    (void)state;
    struct log_access_sink sink;
    struct log_access log;
    close(open_receiver("journal"));
    const char *setting = setting_of("journal", "journal");
    struct log_file_opening opening = { .user = LOG_FILE_NO_USER };
    assert_int_equal(log_file_open(setting, &opening), -ECONNREFUSED);
    assert_string_equal(opening.why, "nothing receives there: Connection refused");

    int receiver = open_receiver("journal");
    open_sink(&sink, &log, "journal", "journal");
    close(receiver);
    add_line(&log, "GET", 200);
    log_access_flush(&log);
    assert_int_equal(sink.dropped, 1);
    receiver = open_receiver("journal");
    const int fresh = log_file_open(setting_of("journal", "journal"), NULL);
    assert_true(fresh >= 0);
    assert_int_equal(log_access_replace(&sink, fresh), 0);
    close(fresh);
    add_line(&log, "GET", 404);
    log_access_stop(&log);
    assert_datagram(receiver, "MESSAGE=404 GET\nPRIORITY=6\nSYSLOG_IDENTIFIER=weir\n"
                              "WEIR_LOG=access\n");
    assert_int_equal(sink.dropped, 1);
    log_access_close(&sink);
    close(receiver);
}

static void a_line_of_the_error_log_has_its_severity(void **state)
{
    (void)state;
    char got[512];
    const int receiver = open_receiver("journal");
    const char *setting = setting_of("journal", "journal");
    log_error_use(log_error_open(setting, NULL), setting, LOG_INFO);
    log_error(LOG_WARNING, "a \"%s\"", "x\ny");
    log_error(LOG_DEBUG, "nothing");
    assert_datagram(receiver, "MESSAGE=a \"x\\x0ay\"\nPRIORITY=4\nSYSLOG_IDENTIFIER=weir\n"
                              "WEIR_LOG=error\n");
    assert_string_equal(log_error_path(), setting);
    close(receiver);

    const int other = open_receiver("log");
    setting = setting_of("syslog", "log");
    log_error_use(log_error_open(setting, NULL), setting, LOG_INFO);
    char long_text[4096];
    memset(long_text, '\x01', sizeof(long_text));
    long_text[sizeof(long_text) - 1] = '\0';
    log_error(LOG_ERROR, "%s", long_text);
    const ssize_t len = recv(other, got, sizeof(got), MSG_TRUNC);
    assert_true(len > 1000 && len <= LOG_ERROR_LINE_MAX);
    assert_memory_equal(got, "<27>1 20", 8);
    log_error_use(STDERR_FILENO, NULL, LOG_INFO);
    close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_the_settings_that_name_a_socket),
        cmocka_unit_test(each_line_is_an_entry_of_the_journal),
        cmocka_unit_test(each_line_is_a_message_of_syslog),
        cmocka_unit_test(a_full_socket_drops_lines_and_does_not_block),
        cmocka_unit_test(a_receiver_that_is_gone_is_found_again),
        cmocka_unit_test(a_line_of_the_error_log_has_its_severity),
    };
    return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
