/* SPDX-License-Identifier: MIT
 *
 * Session tickets: where and how long a session can be resumed, and the memory of the keys.
 */
#include "fixture.h"
#include "tls/tickets.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define START_NS    UINT64_C(1000000000)
#define ROTATION_NS (TLS_TICKETS_ROTATION_S * UINT64_C(1000000000))

static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };

struct fixture {
    struct tree tree;
    struct tls_pair a, b;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    struct fixture *f = &fixture;
    EVP_PKEY *key = make_ec_key();
    tree_make(&f->tree);
    write_pair(&f->tree, "a", key, "DNS:a.test");
    write_pair(&f->tree, "b", key, "DNS:b.test");
    f->a = pair_of(&f->tree, "a.crt", "a.key");
    f->b = pair_of(&f->tree, "b.crt", "b.key");
    EVP_PKEY_free(key);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    free_pair(&f->a);
    free_pair(&f->b);
    tree_remove(&f->tree);
    return 0;
}

static struct tls_tickets open_tickets(void)
{
    struct tls_tickets tickets;
    assert_int_equal(tls_tickets_open(&tickets, START_NS), 0);
    return tickets;
}

static void rotate(struct tls_tickets *tickets)
{
    assert_true(tls_tickets_rotate(tickets, tls_tickets_due_ns(tickets)));
}

/* The sites "a" and "b" have their own files, and "c" has those of "a". */
static struct tls_server *open_server(const struct fixture *f, const struct tls_tickets *tickets)
{
    static const char *const a_hosts[] = { "a.test", NULL };
    static const char *const b_hosts[] = { "b.test", NULL };
    static const char *const c_hosts[] = { "c.test", NULL };
    const struct tls_server_site sites[] = {
        { .name = "a", .hosts = a_hosts, .pairs = &f->a, .pair_count = 1 },
        { .name = "b", .hosts = b_hosts, .pairs = &f->b, .pair_count = 1 },
        { .name = "c", .hosts = c_hosts },
    };
    return new_server(
        &(struct tls_server_plan){ .sites = sites, .site_count = 3, .tickets = tickets });
}

static SSL_SESSION *session_of(struct tls_server *server, int version, const char *host)
{
    struct talk *talk =
        talk_to(server, &(struct client){ .host = host, .lowest = version, .highest = version });
    assert_true(talk->connected);
    assert_false(SSL_session_reused(talk->client));
    SSL_SESSION *session = SSL_get1_session(talk->client);
    assert_true(SSL_SESSION_is_resumable(session));
    assert_true(SSL_SESSION_has_ticket(session));
    end_talk(talk);
    return session;
}

/* Whether the server resumes the session. It connects in any case. */
static bool resumes(struct tls_server *server, SSL_SESSION *session, const char *host)
{
    int version = SSL_SESSION_get_protocol_version(session);
    struct talk *talk =
        talk_to(server, &(struct client){ .host = host, .highest = version, .session = session });
    assert_true(talk->connected);
    bool resumed = SSL_session_reused(talk->client);
    assert_int_equal(SSL_session_reused(talk->server), resumed);
    end_talk(talk);
    return resumed;
}

/* ---- sessions ---- */

static void resumes_at_another_server_with_the_same_keys(void **state)
{
    const struct fixture *f = *state;
    struct tls_tickets tickets = open_tickets(), adopted, other = open_tickets();
    struct tls_server *first = open_server(f, &tickets), *second = open_server(f, &tickets);
    assert_int_equal(tls_tickets_adopt(&adopted, dup(tickets.fd)), 0);
    struct tls_server *upgraded = open_server(f, &adopted), *stranger = open_server(f, &other);
    for (size_t i = 0; i < 2; i++) {
        SSL_SESSION *session = session_of(first, versions[i], "b.test");
        assert_true(resumes(first, session, "b.test"));
        assert_true(resumes(second, session, "b.test"));
        assert_true(resumes(upgraded, session, "b.test"));
        assert_false(resumes(stranger, session, "b.test"));
        SSL_SESSION_free(session);
    }
    tls_server_free(first);
    tls_server_free(second);
    tls_server_free(upgraded);
    tls_server_free(stranger);
    tls_tickets_close(&tickets);
    tls_tickets_close(&adopted);
    tls_tickets_close(&other);
}

static void resumes_only_at_the_site_that_began_the_session(void **state)
{
    const struct fixture *f = *state;
    struct tls_tickets tickets = open_tickets();
    struct tls_server *server = open_server(f, &tickets);
    static const char *const hosts[] = { "a.test", "b.test", "c.test" };
    for (size_t i = 0; i < 2 * 3 * 3; i++) {
        const char *began = hosts[i / 2 % 3], *named = hosts[i / 6];
        SSL_SESSION *session = session_of(server, versions[i % 2], began);
        if (resumes(server, session, named) != (began == named))
            fail_msg("a session of %s at %s", began, named);
        assert_int_equal(resumes(server, session, NULL), began == hosts[0]);
        assert_int_equal(resumes(server, session, "unknown.test"), began == hosts[0]);
        SSL_SESSION_free(session);
    }
    tls_server_free(server);
    tls_tickets_close(&tickets);
}

static void does_not_resume_after_the_certificate_has_changed(void **state)
{
    const struct fixture *f = *state;
    struct tls_tickets tickets = open_tickets();
    struct tls_server_site site = { .name = "a", .pairs = &f->a, .pair_count = 1 };
    struct tls_server_plan plan = { .sites = &site, .site_count = 1, .tickets = &tickets };
    struct tls_server *before = new_server(&plan), *same = new_server(&plan);
    site.pairs = &f->b;
    struct tls_server *after = new_server(&plan);
    for (size_t i = 0; i < 2; i++) {
        SSL_SESSION *session = session_of(before, versions[i], NULL);
        assert_true(resumes(same, session, NULL));
        assert_false(resumes(after, session, NULL));
        SSL_SESSION_free(session);
    }
    tls_server_free(before);
    tls_server_free(same);
    tls_server_free(after);
    tls_tickets_close(&tickets);
}

static void resumes_until_the_second_rotation(void **state)
{
    const struct fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        struct tls_tickets tickets = open_tickets();
        struct tls_server *server = open_server(f, &tickets);
        SSL_SESSION *session = session_of(server, versions[i], "a.test");
        assert_int_equal(SSL_SESSION_get_ticket_lifetime_hint(session), TLS_TICKETS_LIFE_S);
        rotate(&tickets);
        assert_true(resumes(server, session, "a.test"));
        rotate(&tickets);
        assert_false(resumes(server, session, "a.test"));
        rotate(&tickets);
        assert_false(resumes(server, session, "a.test"));
        SSL_SESSION_free(session);
        tls_server_free(server);
        tls_tickets_close(&tickets);
    }
}

static int count_ticket(SSL *ssl, SSL_SESSION *session)
{
    (void)session;
    (*(unsigned *)SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)))++;
    return 0;
}

static bool is_same_ticket(const SSL_SESSION *a, const SSL_SESSION *b)
{
    const unsigned char *a_at, *b_at;
    size_t a_len, b_len;
    SSL_SESSION_get0_ticket(a, &a_at, &a_len);
    SSL_SESSION_get0_ticket(b, &b_at, &b_len);
    return span_equal(span_of((const char *)a_at, a_len), span_of((const char *)b_at, b_len));
}

/* How many tickets a client gets. OpenSSL's client does not report one that it gets with a resumed
 * session of TLS 1.2. */
static unsigned tickets_of(struct tls_server *server, int version, SSL_SESSION *session,
                           SSL_SESSION **ret_session)
{
    struct talk *talk = calloc(1, sizeof(*talk));
    SSL_SESSION *copy = session ? SSL_SESSION_dup(session) : NULL; /* that it may mark as used */
    unsigned count = 0;
    open_client(talk, &(struct client){ .lowest = version, .highest = version, .session = copy });
    SSL_SESSION_free(copy);
    SSL_CTX_set_app_data(talk->context, &count);
    SSL_CTX_set_session_cache_mode(talk->context,
                                   SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
    SSL_CTX_sess_set_new_cb(talk->context, count_ticket);
    talk->server = tls_server_accept(server);
    join(talk);
    talk_on(talk);
    assert_true(talk->connected);
    assert_int_equal(SSL_session_reused(talk->client), session != NULL);
    if (session && version == TLS1_2_VERSION)
        count = !is_same_ticket(session, SSL_get_session(talk->client));
    if (ret_session)
        *ret_session = SSL_get1_session(talk->client);
    end_talk(talk);
    return count;
}

static void gives_one_ticket_and_another_when_it_is_used(void **state)
{
    const struct fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        struct tls_tickets tickets = open_tickets();
        struct tls_server *server = open_server(f, &tickets);
        SSL_SESSION *session, *renewed;
        assert_int_equal(tickets_of(server, versions[i], NULL, &session), 1);
        /* A ticket of TLS 1.2 is good for several connections, until the rotation. */
        assert_int_equal(tickets_of(server, versions[i], session, NULL), i);
        rotate(&tickets);
        assert_int_equal(tickets_of(server, versions[i], session, &renewed), 1);
        rotate(&tickets);
        assert_false(resumes(server, session, NULL));
        assert_true(resumes(server, renewed, NULL));
        SSL_SESSION_free(session);
        SSL_SESSION_free(renewed);
        tls_server_free(server);
        tls_tickets_close(&tickets);
    }
}

/* Tickets are the only memory of sessions. */
static void does_not_resume_a_session_without_a_ticket(void **state)
{
    const struct fixture *f = *state;
    struct tls_tickets tickets = open_tickets();
    struct tls_server *server = open_server(f, &tickets);
    SSL_SESSION *session = NULL;
    for (unsigned i = 0; i < 2; i++) {
        struct talk *talk = calloc(1, sizeof(*talk));
        open_client(talk, &(struct client){ .highest = TLS1_2_VERSION, .session = session });
        SSL_set_options(talk->client, SSL_OP_NO_TICKET);
        talk->server = tls_server_accept(server);
        join(talk);
        talk_on(talk);
        assert_true(talk->connected);
        assert_false(SSL_session_reused(talk->client));
        SSL_SESSION_free(session);
        session = SSL_get1_session(talk->client);
        end_talk(talk);
    }
    SSL_SESSION_free(session);
    tls_server_free(server);
    tls_tickets_close(&tickets);
}

static void gives_no_ticket_without_keys(void **state)
{
    const struct fixture *f = *state;
    struct tls_server *server = open_server(f, NULL);
    for (size_t i = 0; i < 2; i++) {
        SSL_SESSION *session;
        (void)tickets_of(server, versions[i], NULL, &session);
        assert_false(SSL_SESSION_has_ticket(session));
        SSL_SESSION_free(session);
    }
    tls_server_free(server);
}

/* Ends like a test that failed if the child did. */
static void expect_success(pid_t child)
{
    int status;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Without /proc, the flags of a mapping cannot be read, and tls_tickets_protect does less. */
static bool has_proc(void)
{
    return access("/proc/self/smaps", R_OK) == 0;
}

static bool is_left_out_of_dumps(void)
{
    FILE *maps = fopen("/proc/self/smaps", "re");
    char line[512];
    bool inside = false, found = false;
    while (maps && fgets(line, sizeof(line), maps)) {
        inside = inside || strstr(line, "weir-tickets") != NULL;
        if (inside && strncmp(line, "VmFlags:", 8) == 0) {
            found = strstr(line, " dd") != NULL;
            break;
        }
    }
    if (maps)
        (void)fclose(maps);
    return found || !has_proc();
}

static bool can_write_again(const struct tls_tickets *tickets)
{
    return has_proc() && mprotect(tickets->memory, 1, PROT_READ | PROT_WRITE) == 0;
}

static void resumes_in_a_worker_that_cannot_write_the_keys(void **state)
{
    const struct fixture *f = *state;
    struct tls_tickets tickets = open_tickets();
    struct tls_server *server = open_server(f, &tickets);
    SSL_SESSION *session = session_of(server, TLS1_3_VERSION, "a.test");
    assert_true(is_left_out_of_dumps());
    rotate(&tickets);
    pid_t child = fork();
    if (child == 0) {
        struct tls_tickets_key key;
        int wrong = tls_tickets_protect(&tickets) < 0;
        wrong |= (tickets.fd != -1) << 1;
        wrong |= !resumes(server, session, "a.test") << 2;
        wrong |= can_write_again(&tickets) << 3;
        wrong |= !tls_tickets_current(&tickets, &key) << 4;
        wrong |= !is_left_out_of_dumps() << 5;
        _exit(wrong);
    }
    expect_success(child);

    /* A rotation by the master is seen by a worker. */
    struct tls_tickets_key before, after;
    assert_true(tls_tickets_current(&tickets, &before));
    child = fork();
    if (child == 0) {
        int rc = tls_tickets_protect(&tickets);
        while (rc == 0 && tls_tickets_current(&tickets, &after) &&
               memcmp(&before, &after, sizeof(before)) == 0)
            continue;
        _exit(rc < 0 || tls_tickets_find(&tickets, before.name, &after) != TLS_TICKETS_PREVIOUS);
    }
    rotate(&tickets);
    expect_success(child);
    SSL_SESSION_free(session);
    tls_server_free(server);
    tls_tickets_close(&tickets);
}

/* ---- the memory ---- */

static void rotates_when_it_is_due_and_once(void **state)
{
    (void)state;
    struct tls_tickets tickets = open_tickets(), other;
    struct tls_tickets_key first, second, found;
    assert_int_equal(tls_tickets_adopt(&other, dup(tickets.fd)), 0);
    assert_int_equal(tls_tickets_due_ns(&tickets), START_NS + ROTATION_NS);
    assert_true(tls_tickets_current(&tickets, &first));
    assert_false(tls_tickets_rotate(&tickets, START_NS + ROTATION_NS - 1));
    assert_true(tls_tickets_rotate(&tickets, START_NS + ROTATION_NS + 7));
    assert_false(tls_tickets_rotate(&other, START_NS + ROTATION_NS + 8));
    assert_int_equal(tls_tickets_due_ns(&other), START_NS + 2 * ROTATION_NS + 7);
    assert_true(tls_tickets_current(&other, &second));
    assert_memory_not_equal(first.name, second.name, sizeof(first.name));
    assert_memory_not_equal(first.cipher, second.cipher, sizeof(first.cipher));
    assert_memory_not_equal(first.mac, second.mac, sizeof(first.mac));
    assert_int_equal(tls_tickets_find(&other, first.name, &found), TLS_TICKETS_PREVIOUS);
    assert_memory_equal(&found, &first, sizeof(first));
    assert_int_equal(tls_tickets_find(&other, second.name, &found), TLS_TICKETS_FRESH);
    assert_memory_equal(&found, &second, sizeof(second));
    tls_tickets_close(&tickets);
    tls_tickets_close(&other);
}

/* A key that left is in the memory no more. */
static void erases_a_key_that_opens_no_ticket(void **state)
{
    (void)state;
    struct tls_tickets tickets = open_tickets();
    struct tls_tickets_key key;
    struct stat info;
    assert_int_equal(fstat(tickets.fd, &info), 0);
    assert_true(tls_tickets_current(&tickets, &key));
    assert_non_null(memmem(tickets.memory, (size_t)info.st_size, key.mac, sizeof(key.mac)));
    rotate(&tickets);
    assert_non_null(memmem(tickets.memory, (size_t)info.st_size, key.mac, sizeof(key.mac)));
    rotate(&tickets);
    assert_null(memmem(tickets.memory, (size_t)info.st_size, key.mac, sizeof(key.mac)));
    tls_tickets_close(&tickets);
}

struct rotating {
    struct tls_tickets *tickets;
    _Atomic bool ended;
};

static void *rotate_until_ended(void *argument)
{
    struct rotating *r = argument;
    while (!atomic_load(&r->ended))
        (void)tls_tickets_rotate(r->tickets, tls_tickets_due_ns(r->tickets));
    return NULL;
}

static void reads_whole_keys_while_another_thread_rotates(void **state)
{
    const struct fixture *f = *state;
    struct tls_tickets tickets = open_tickets();
    struct tls_server *server = open_server(f, &tickets);
    struct rotating r = { .tickets = &tickets };
    pthread_t thread;
    unsigned found = 0;
    assert_int_equal(pthread_create(&thread, NULL, rotate_until_ended, &r), 0);
    for (unsigned i = 0; i < 20000; i++) {
        struct tls_tickets_key one, other;
        if (!tls_tickets_current(&tickets, &one) ||
            tls_tickets_find(&tickets, one.name, &other) == TLS_TICKETS_UNKNOWN)
            continue;
        assert_memory_equal(&one, &other, sizeof(one));
        found++;
    }
    SSL_SESSION *session = session_of(server, TLS1_3_VERSION, "a.test");
    for (unsigned i = 0; i < 20; i++)
        (void)resumes(server, session, "a.test"); /* it connects in any case */
    SSL_SESSION_free(session);
    atomic_store(&r.ended, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(found > 0);
    tls_server_free(server);
    tls_tickets_close(&tickets);
}

static void survives_any_content_of_the_memory(void **state)
{
    const struct fixture *f = *state;
    struct tls_tickets tickets = open_tickets();
    struct tls_server *server = open_server(f, &tickets);
    SSL_SESSION *session = session_of(server, TLS1_3_VERSION, "a.test");
    struct stat info;
    struct tls_tickets_key key, found;
    assert_int_equal(fstat(tickets.fd, &info), 0);
    assert_true(tls_tickets_current(&tickets, &key));
    unsigned char *bytes = (unsigned char *)tickets.memory;
    for (int fill = 0; fill < 256; fill++) {
        memset(bytes, fill, (size_t)info.st_size);
        assert_int_equal(tls_tickets_find(&tickets, key.name, &found), TLS_TICKETS_UNKNOWN);
        assert_int_equal(tls_tickets_current(&tickets, &found), fill != 0);
        (void)tls_tickets_due_ns(&tickets);
    }
    memset(bytes, 0, (size_t)info.st_size);
    assert_false(tls_tickets_current(&tickets, &found));
    struct talk *talk = talk_to(server, &(struct client){ .session = session });
    assert_false(talk->connected);
    assert_int_equal(talk->alert, SSL_AD_INTERNAL_ERROR);
    end_talk(talk);
    SSL_SESSION_free(session);
    tls_server_free(server);
    tls_tickets_close(&tickets);
}

static void assert_not_adopted(int fd)
{
    struct tls_tickets tickets;
    assert_true(fd >= 0);
    assert_int_equal(tls_tickets_adopt(&tickets, fd), -EPROTO);
    assert_int_equal(tickets.fd, -1);
    assert_null(tickets.memory);
    assert_int_equal(fcntl(fd, F_GETFD), -1); /* closed */
}

static int copy_tickets(const struct tls_tickets *tickets, off_t bytes, int seals)
{
    int fd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, tickets->memory, (size_t)bytes, 0), bytes);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static void adopts_only_memory_that_another_master_made(void **state)
{
    (void)state;
    struct tls_tickets tickets = open_tickets(), adopted;
    struct stat info;
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    assert_int_equal(fstat(tickets.fd, &info), 0);
    assert_int_equal(fcntl(tickets.fd, F_GET_SEALS) & seals, seals);
    assert_int_equal(tls_tickets_adopt(&adopted, copy_tickets(&tickets, info.st_size, seals)), 0);
    assert_int_not_equal(fcntl(adopted.fd, F_GETFD) & FD_CLOEXEC, 0);
    tls_tickets_close(&adopted);

    assert_not_adopted(copy_tickets(&tickets, info.st_size, F_SEAL_GROW | F_SEAL_SEAL));
    assert_not_adopted(copy_tickets(&tickets, info.st_size - 8, seals));
    assert_not_adopted(open("/dev/null", O_RDWR | O_CLOEXEC));
    *(char *)tickets.memory ^= 1; /* another layout */
    assert_not_adopted(copy_tickets(&tickets, info.st_size, seals));
    tls_tickets_close(&tickets);
    tls_tickets_close(&tickets);
    tls_tickets_close(&(struct tls_tickets){ 0 });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resumes_at_another_server_with_the_same_keys),
        cmocka_unit_test(resumes_only_at_the_site_that_began_the_session),
        cmocka_unit_test(does_not_resume_after_the_certificate_has_changed),
        cmocka_unit_test(resumes_until_the_second_rotation),
        cmocka_unit_test(gives_one_ticket_and_another_when_it_is_used),
        cmocka_unit_test(does_not_resume_a_session_without_a_ticket),
        cmocka_unit_test(gives_no_ticket_without_keys),
        cmocka_unit_test(resumes_in_a_worker_that_cannot_write_the_keys),
        cmocka_unit_test(rotates_when_it_is_due_and_once),
        cmocka_unit_test(erases_a_key_that_opens_no_ticket),
        cmocka_unit_test(reads_whole_keys_while_another_thread_rotates),
        cmocka_unit_test(survives_any_content_of_the_memory),
        cmocka_unit_test(adopts_only_memory_that_another_master_made),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
