/* SPDX-License-Identifier: MIT
 *
 * Requests for files that are not in memory, driven as a loop drives them. The disk of these tests
 * has nothing in memory while it is cold, and it answers when the test says so. So each order of
 * events is certain, without a sleep.
 */
#include "session/fetch.h"

#include "framed.h"
#include "os/clock.h"
#include "os/file.h"
#include "site/fetch.h"
#include "task/task.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

enum { WAIT_MS = 60 * 1000, THREADS = 2, QUEUE = 3 };

/* ---- a disk ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool cold;        /* no path is in memory */
    const char *slow; /* this path has no answer; NULL: all have one */
    bool all_slow;    /* no path has an answer */
    bool empty;       /* no path has a file */
    unsigned held;    /* lookups that wait for an answer */
    unsigned lookups; /* by fetching threads */
    bool slow_names;  /* no name of a folder has attributes */
    unsigned names;   /* of folders, whose attributes were requested */
    _Atomic uint64_t now_ns;
} disk = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

int __real_os_file_open_cached(int root_fd, const char *path);
int __real_os_file_open_beneath(int root_fd, const char *path);
int __wrap_os_file_open_cached(int root_fd, const char *path);
int __wrap_os_file_open_beneath(int root_fd, const char *path);
int __real_os_file_stat_at(int folder_fd, const char *name, struct stat *ret_status);
int __wrap_os_file_stat_at(int folder_fd, const char *name, struct stat *ret_status);
uint64_t __wrap_os_clock_now_ns(void);

uint64_t __wrap_os_clock_now_ns(void)
{
    return atomic_load(&disk.now_ns);
}

int __wrap_os_file_open_cached(int root_fd, const char *path)
{
    return disk.cold ? -EINPROGRESS : __real_os_file_open_cached(root_fd, path);
}

int __wrap_os_file_open_beneath(int root_fd, const char *path)
{
    pthread_mutex_lock(&disk.lock);
    const bool empty = disk.empty; /* when the lookup begins */
    disk.lookups++;
    disk.held++;
    pthread_cond_broadcast(&disk.changed);
    while (disk.all_slow || (disk.slow && strcmp(disk.slow, path) == 0))
        pthread_cond_wait(&disk.changed, &disk.lock);
    disk.held--;
    pthread_mutex_unlock(&disk.lock);
    return empty ? -ENOENT : __real_os_file_open_beneath(root_fd, path);
}

int __wrap_os_file_stat_at(int folder_fd, const char *name, struct stat *ret_status)
{
    pthread_mutex_lock(&disk.lock);
    disk.names++;
    pthread_cond_broadcast(&disk.changed);
    while (disk.slow_names)
        pthread_cond_wait(&disk.changed, &disk.lock);
    pthread_mutex_unlock(&disk.lock);
    return __real_os_file_stat_at(folder_fd, name, ret_status);
}

static void hold_names(bool slow)
{
    pthread_mutex_lock(&disk.lock);
    disk.slow_names = slow;
    pthread_cond_broadcast(&disk.changed);
    pthread_mutex_unlock(&disk.lock);
}

static void wait_for_name(void)
{
    pthread_mutex_lock(&disk.lock);
    while (disk.names == 0)
        pthread_cond_wait(&disk.changed, &disk.lock);
    pthread_mutex_unlock(&disk.lock);
}

static unsigned names(void)
{
    pthread_mutex_lock(&disk.lock);
    const unsigned count = disk.names;
    pthread_mutex_unlock(&disk.lock);
    return count;
}

static void fill(bool filled)
{
    pthread_mutex_lock(&disk.lock);
    disk.empty = !filled;
    pthread_mutex_unlock(&disk.lock);
}

static void pass_time(uint64_t later_ns)
{
    tick(later_ns);
    atomic_store(&disk.now_ns, world.now_ns);
}

static void hold(const char *path)
{
    pthread_mutex_lock(&disk.lock);
    disk.slow = path;
    disk.all_slow = false;
    pthread_cond_broadcast(&disk.changed);
    pthread_mutex_unlock(&disk.lock);
}

static void wait_for_held(unsigned count)
{
    pthread_mutex_lock(&disk.lock);
    while (disk.held != count)
        pthread_cond_wait(&disk.changed, &disk.lock);
    pthread_mutex_unlock(&disk.lock);
}

static unsigned lookups(void)
{
    pthread_mutex_lock(&disk.lock);
    const unsigned count = disk.lookups;
    pthread_mutex_unlock(&disk.lock);
    return count;
}

/* ---- two loops ---- */

static struct task_home homes[2];

#define LIST        "GET / HTTP/1.1\r\nHost: list.test\r\n\r\n"
#define LIST_BY(by) "GET /?sort=" by " HTTP/1.1\r\nHost: list.test\r\n\r\n"

enum { LISTED = 100 }; /* their listing is too long to be copied */

#define BUSY_PAGE "pppppppppppppppp" /* of the site list.test */

static char listed_root[80]; /* of the site list.test */
static char pages_root[80];  /* its error pages */

static int add_listed_site(void)
{
    static const char *const hosts[] = { "list.test", NULL }, *const index[] = { NULL };
    static const struct site_options options = { .name = "list",
                                                 .root = listed_root,
                                                 .index = index,
                                                 .listing = true,
                                                 .error_pages = pages_root,
                                                 .body_max = 64 * 1024 };
    (void)snprintf(listed_root, sizeof(listed_root), "%s/listed", world.root);
    (void)snprintf(pages_root, sizeof(pages_root), "%s/pages", world.root);
    if (mkdir(listed_root, 0755) < 0 || mkdir(pages_root, 0755) < 0)
        return -1;
    write_file("pages/503.html", sizeof(BUSY_PAGE) - 1, 'p');
    for (unsigned i = 0; i < LISTED; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "listed/%u.txt", i);
        write_file(name, 1, 'l');
    }
    const char *what;
    world.sites[1].hosts = hosts;
    world.shared.site_count = 2;
    return site_open(&world.sites[1].site, &options, world.mime, &what);
}

static int remove_listed_site(void)
{
    for (unsigned i = 0; i < LISTED; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "listed/%u.txt", i);
        remove_file(name);
    }
    remove_file("pages/503.html");
    return rmdir(pages_root) < 0 ? -1 : rmdir(listed_root);
}

static int make_cold_world(void **state)
{
    (void)state;
    const struct task_limits lanes[TASK_LANES] = {
        { 1, 1 },
        [TASK_FETCHES] = { THREADS, QUEUE },
        [TASK_LISTINGS] = { 1, QUEUE },
    };
    if (make_world() < 0 || add_listed_site() < 0)
        return -1;
    world.shared.h2c = true;
    world.shared.tasks = task_pool_new(lanes);
    world.shared.fetches = site_fetch_new(world.shared.tasks, &world.shared.listings);
    if (start_world() < 0)
        return -1;
    settle("/middle.bin");
    for (int i = 0; i < 2; i++) {
        homes[i] = (struct task_home){ .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
        session_thread_use_home(i == 0 ? &world.thread : &world.other, &homes[i]);
    }
    pass_time(0);
    disk.cold = true;
    disk.slow = NULL;
    disk.lookups = disk.names = 0;
    return 0;
}

static int end_cold_world(void **state)
{
    (void)state;
    hold(NULL);
    hold_names(false);
    tick(0);
    end_tasks();
    for (int i = 0; i < 2; i++)
        close(homes[i].wake_fd);
    struct site *listed = world.sites[1].site;
    const int rc = remove_listed_site() < 0 || end_world() < 0 ? -1 : 0;
    site_close(listed);
    return rc;
}

static struct session open_on(struct session_thread *thread)
{
    struct session s;
    session_open(&s, thread, (struct session_origin){ .peer.family = 4 }, world.now_ns);
    return s;
}

static char answer[1 << 20];

/* Sends all of the output, and appends it to `answer`. Files are left out. */
static unsigned send_all(struct session *s)
{
    unsigned want = SESSION_WRITE;
    size_t len = strlen(answer);
    while (want & SESSION_WRITE) {
        const struct session_out out = session_output(s);
        size_t sent = 0;
        for (unsigned i = 0; i < out.count; i++) {
            assert_true(len + sent + out.piece[i].len < sizeof(answer));
            memcpy(answer + len + sent, out.piece[i].at, out.piece[i].len);
            sent += out.piece[i].len;
        }
        len += sent;
        answer[len] = '\0';
        want = session_sent(s, sent + (out.file_fd >= 0 ? (size_t)out.file_len : 0), world.now_ns);
    }
    return want;
}

/* Waits as a loop does for a session whose answer is ready. */
static struct session *next_ready(const struct session_thread *thread)
{
    struct session *ready;
    while (!(ready = session_thread_next_ready(thread))) {
        struct pollfd end = { .fd = thread->home->wake_fd, .events = POLLIN };
        uint64_t wakes;
        assert_int_equal(poll(&end, 1, WAIT_MS), 1);
        assert_int_equal(read(thread->home->wake_fd, &wakes, sizeof(wakes)), sizeof(wakes));
    }
    return ready;
}

/* The same for a session that waits alone. Returns what it wants then. */
static unsigned resume_ready(struct session *expected)
{
    assert_ptr_equal(next_ready(expected->thread), expected);
    return session_resume(expected, world.now_ns);
}

/* Sends and resumes until the session waits for input. `answer` has all answers. */
static void serve(struct session *s, unsigned want)
{
    answer[0] = '\0';
    while (want & (SESSION_WAIT | SESSION_WRITE))
        want = want == SESSION_WAIT ? resume_ready(s) : send_all(s);
}

static unsigned answers_in(const char *text)
{
    unsigned count = 0;
    for (const char *at = answer; (at = strstr(at, text)); at += strlen(text))
        count++;
    return count;
}

static void assert_served(struct session *s, unsigned want, const char *status)
{
    serve(s, want);
    if (!span_starts(span_text(answer), span_text(status)))
        fail_msg("%s, not %s", answer, status);
}

/* Resumes the sessions of a thread until `count` of them have their answer, which is a 200. */
static void serve_all(const struct session_thread *thread, unsigned count)
{
    while (count > 0) {
        struct session *s = next_ready(thread);
        const unsigned want = session_resume(s, world.now_ns);
        if (want == SESSION_WAIT)
            continue; /* another session prepares the entry */
        assert_served(s, want, "HTTP/1.1 200 OK\r\n");
        count--;
    }
}

/* ---- HTTP/1.1 ---- */

static void a_file_that_is_not_in_memory_stops_only_its_client(void **state)
{
    (void)state;
    hold("small.html");
    struct session slow = open_on(&world.thread), other = open_on(&world.thread);
    const unsigned want = feed(&slow, GET("/small.html"));
    assert_int_equal(want, SESSION_WAIT);
    assert_true(session_is_pending(&slow));
    assert_false(session_idle(&slow));
    assert_int_equal(session_room(&slow), 0);
    wait_for_held(1);
    disk.cold = false;
    assert_served(&other, feed(&other, GET("/middle.bin")), "HTTP/1.1 200 OK\r\n");
    assert_null(session_thread_next_ready(&world.thread));
    disk.cold = true;
    hold(NULL);
    assert_served(&slow, want, "HTTP/1.1 200 OK\r\n");
    assert_true(answers_in("ssss") > 0);
    assert_false(session_is_pending(&slow));
    session_close(&slow);
    session_close(&other);
    assert_int_equal(lookups(), 1);
}

/* A file in memory needs no thread. */
static void a_file_in_memory_is_answered_at_once(void **state)
{
    (void)state;
    disk.cold = false;
    struct session s = open_on(&world.thread);
    assert_int_equal(feed(&s, GET("/small.html") GET("/big.bin")), SESSION_WRITE);
    assert_served(&s, SESSION_WRITE, "HTTP/1.1 200 OK\r\n");
    session_close(&s);
    assert_int_equal(lookups(), 0);
}

/* Sessions of two loops wait for the same path. */
static void one_fetch_serves_all_who_request_the_path(void **state)
{
    enum { MANY = 20 };
    (void)state;
    struct session sessions[MANY];
    hold("small.html");
    for (unsigned i = 0; i < MANY; i++) {
        sessions[i] = open_on(i % 2 == 0 ? &world.thread : &world.other);
        assert_int_equal(feed(&sessions[i], GET("/small.html")), SESSION_WAIT);
    }
    wait_for_held(1);
    hold(NULL);
    serve_all(&world.thread, MANY / 2);
    serve_all(&world.other, MANY / 2);
    for (unsigned i = 0; i < MANY; i++)
        session_close(&sessions[i]);
    assert_int_equal(lookups(), 1);
}

static void use_no_cache(void)
{
    session_thread_stop(&world.thread);
    session_thread_stop(&world.other);
    site_cache_free(world.shared.cache);
    world.shared.cache = site_cache_new((struct site_cache_limits){ .bytes = 0 }, 2);
    assert_int_equal(session_thread_start(&world.thread, &world.shared, 0), 0);
    assert_int_equal(session_thread_start(&world.other, &world.shared, 1), 0);
    session_thread_use_home(&world.thread, &homes[0]);
    session_thread_use_home(&world.other, &homes[1]);
    tick(0);
}

/* The same where the cache keeps nothing: what a fetch has found does not depend on it. */
static void all_are_answered_without_a_cache(void **state)
{
    enum { MANY = 6 };
    (void)state;
    struct session sessions[MANY];
    use_no_cache();
    static const char *const requests[] = { GET("/small.html"), GET("/big.bin") };
    static const char *const paths[] = { "small.html", "big.bin" };
    for (unsigned r = 0; r < 2; r++) {
        hold(paths[r]);
        for (unsigned i = 0; i < MANY; i++) {
            sessions[i] = open_on(i % 2 == 0 ? &world.thread : &world.other);
            assert_int_equal(feed(&sessions[i], requests[r]), SESSION_WAIT);
        }
        hold(NULL);
        serve_all(&world.thread, MANY / 2);
        serve_all(&world.other, MANY / 2);
        for (unsigned i = 0; i < MANY; i++)
            session_close(&sessions[i]);
    }
    assert_int_equal(lookups(), 2);
}

static void a_client_that_leaves_leaves_nothing(void **state)
{
    (void)state;
    static const char *const requests[] = { GET("/small.html"), GET("/big.bin"), GET("/a"),
                                            GET("/b") };
    disk.all_slow = true;
    for (unsigned i = 0; i < 40; i++) { /* running, in the queue, and joined */
        struct session s = open_on(&world.thread), same = open_on(&world.thread);
        assert_int_equal(feed(&s, requests[i % 4]), SESSION_WAIT);
        assert_int_equal(feed(&same, requests[i % 4]), SESSION_WAIT);
        session_close(&s);
        session_close(&same);
        tick(0);
        while (session_thread_next_ready(&world.thread))
            fail_msg("%s", "a closed session is ready");
    }
    hold(NULL);
    struct session last = open_on(&world.thread);
    assert_served(&last, feed(&last, GET("/small.html")), "HTTP/1.1 200 OK\r\n");
    session_close(&last);
}

/* The request that would publish the new entry goes away before it resumes. */
static void the_next_request_takes_what_the_first_has_left(void **state)
{
    (void)state;
    hold("small.html");
    struct session first = open_on(&world.thread), second = open_on(&world.other);
    assert_int_equal(feed(&first, GET("/small.html")), SESSION_WAIT);
    assert_int_equal(feed(&second, GET("/small.html")), SESSION_WAIT);
    hold(NULL);
    while (!session_thread_next_ready(&world.thread))
        usleep(1000);
    session_close(&first);
    assert_served(&second, SESSION_WAIT, "HTTP/1.1 200 OK\r\n");
    session_close(&second);
    assert_int_equal(lookups(), 1);
}

static void an_answer_is_not_pending_without_end(void **state)
{
    (void)state;
    hold("small.html");
    struct session s = open_on(&world.thread);
    assert_int_equal(feed(&s, GET("/small.html")), SESSION_WAIT);
    pass_time(session_deadline_ns(&s) - world.now_ns);
    assert_int_equal(session_expire(&s, world.now_ns), SESSION_WRITE);
    assert_served(&s, SESSION_WRITE, "HTTP/1.1 503 ");
    assert_int_equal(answers_in("\r\nRetry-After: 1\r\n"), 1);
    hold(NULL);
    session_close(&s);
    assert_null(session_thread_next_ready(&world.thread));
}

/* Both threads wait, and the queue holds three: the next path is refused. A path that is fetched
 * already is not. */
static void a_full_queue_refuses(void **state)
{
    (void)state;
    static const char *const requests[] = { GET("/small.html"), GET("/small.html/"), GET("/b"),
                                            GET("/c"), GET("/d") };
    struct session sessions[5], refused = open_on(&world.thread), same = open_on(&world.thread);
    disk.all_slow = true;
    for (unsigned i = 0; i < 5; i++) {
        sessions[i] = open_on(&world.thread);
        assert_int_equal(feed(&sessions[i], requests[i]), SESSION_WAIT);
        if (i < THREADS)
            wait_for_held(i + 1);
    }
    assert_served(&refused, feed(&refused, GET("/e")), "HTTP/1.1 503 ");
    assert_int_equal(answers_in("\r\nRetry-After: 1\r\n"), 1);
    assert_int_equal(feed(&same, GET("/d")), SESSION_WAIT);
    session_close(&refused);
    session_close(&same);
    for (unsigned i = 1; i < 5; i++)
        session_close(&sessions[i]);
    hold(NULL);
    assert_served(&sessions[0], SESSION_WAIT, "HTTP/1.1 200 OK\r\n");
    session_close(&sessions[0]);
}

/* Requests before and behind the one that waits are answered in their order. */
static void pipelined_answers_keep_their_order(void **state)
{
    (void)state;
    struct session s = open_on(&world.thread);
    const unsigned want =
        feed(&s, GET("/middle.bin") GET("/small.html") GET("/absent") GET("/middle.bin"));
    serve(&s, want);
    static const char *const statuses[] = { "200", "200", "404", "200" };
    const char *at = answer;
    for (size_t i = 0; i < 4; i++) {
        at = strstr(at, "HTTP/1.1 ");
        assert_non_null(at);
        at += sizeof("HTTP/1.1 ") - 1;
        assert_true(span_starts(span_text(at), span_text(statuses[i])));
    }
    session_close(&s);
}

static void a_body_follows_a_request_that_waits(void **state)
{
    (void)state;
    struct session s = open_on(&world.thread);
    serve(&s, feed(&s, "GET /small.html HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody" GET(
                           "/small.html")));
    assert_int_equal(answers_in("HTTP/1.1 200 OK\r\n"), 2);
    session_close(&s);
}

static void a_drain_waits_for_the_answer(void **state)
{
    (void)state;
    hold("small.html");
    struct session s = open_on(&world.thread);
    assert_int_equal(feed(&s, GET("/small.html")), SESSION_WAIT);
    atomic_store(&world.shared.draining, true);
    assert_int_equal(session_idle_since_ns(&s), UINT64_MAX);
    hold(NULL);
    assert_served(&s, SESSION_WAIT, "HTTP/1.1 200 OK\r\n");
    assert_int_equal(answers_in("\r\nConnection: close\r\n"), 1);
    session_close(&s);
    atomic_store(&world.shared.draining, false);
}

/* ---- entries that are compared with the disk ---- */

/* One request waits for the comparison. Others use the entry meanwhile. */
static void a_stale_entry_is_used_while_one_request_compares_it(void **state)
{
    (void)state;
    pass_time(SITE_FRESH_NS);
    hold("middle.bin");
    struct session first = open_on(&world.thread), second = open_on(&world.thread);
    assert_int_equal(feed(&first, GET("/middle.bin")), SESSION_WAIT);
    assert_served(&second, feed(&second, GET("/middle.bin")), "HTTP/1.1 200 OK\r\n");
    hold(NULL);
    assert_served(&first, SESSION_WAIT, "HTTP/1.1 200 OK\r\n");
    session_close(&first);
    session_close(&second);
    assert_int_equal(lookups(), 1);
}

/* The request that has waited for the comparison gets the new version, and so do all after it. */
static void a_file_that_has_changed_is_answered_in_its_new_version(void **state)
{
    (void)state;
    pass_time(SITE_FRESH_NS);
    hold("middle.bin");
    struct session first = open_on(&world.thread), late = open_on(&world.other);
    assert_int_equal(feed(&first, GET("/middle.bin")), SESSION_WAIT);
    write_file("middle.bin", 10, 'n');
    hold(NULL);
    assert_served(&first, SESSION_WAIT, "HTTP/1.1 200 OK\r\n");
    assert_int_equal(answers_in("\r\n\r\nnnnnnnnnnn"), 1);
    assert_served(&late, feed(&late, GET("/middle.bin")), "HTTP/1.1 200 OK\r\n");
    assert_int_equal(answers_in("\r\n\r\nnnnnnnnnnn"), 1);
    session_close(&first);
    session_close(&late);
}

/* The client that waits for the comparison leaves. The next request makes the comparison. */
static void a_comparison_without_a_client_is_made_by_the_next_request(void **state)
{
    (void)state;
    pass_time(SITE_FRESH_NS);
    struct session first = open_on(&world.thread), second = open_on(&world.thread);
    hold("middle.bin");
    assert_int_equal(feed(&first, GET("/middle.bin")), SESSION_WAIT);
    wait_for_held(1);
    write_file("middle.bin", 10, 'n');
    session_close(&first);
    hold(NULL);
    do { /* until the thread has ended the fetch */
        assert_served(&second, feed(&second, GET("/middle.bin")), "HTTP/1.1 200 OK\r\n");
    } while (answers_in("\r\n\r\nnnnnnnnnnn") == 0);
    session_close(&second);
}

/* A request joins a fetch that began long before it. The file may have changed between the two. */
static void a_late_request_does_not_get_an_early_result(void **state)
{
    (void)state;
    hold("small.html");
    struct session early = open_on(&world.thread), late = open_on(&world.thread);
    assert_int_equal(feed(&early, GET("/small.html")), SESSION_WAIT);
    wait_for_held(1);
    pass_time(3600 * SECOND);
    assert_int_equal(feed(&late, GET("/small.html")), SESSION_WAIT);
    hold(NULL);
    serve_all(&world.thread, 2);
    assert_int_equal(lookups(), 2);
    session_close(&early);
    session_close(&late);
}

/* A file appears while a lookup that has not found it is under way. Later requests find it. */
static void a_file_that_appears_is_found_by_the_next_request(void **state)
{
    (void)state;
    hold("small.html");
    fill(false);
    struct session early = open_on(&world.thread), late = open_on(&world.other);
    assert_int_equal(feed(&early, GET("/small.html")), SESSION_WAIT);
    wait_for_held(1);
    fill(true);
    assert_int_equal(feed(&late, GET("/small.html")), SESSION_WAIT);
    hold(NULL);
    assert_served(&late, SESSION_WAIT, "HTTP/1.1 200 OK\r\n");
    assert_served(&early, SESSION_WAIT, "HTTP/1.1 404 Not Found\r\n");
    session_close(&early);
    session_close(&late);
}

/* A file appears after a lookup that has not found it. In the turn that brings this result, a
 * request whose input came before the turn finds the file. */
static void an_early_result_proves_nothing_for_its_turn(void **state)
{
    (void)state;
    fill(false);
    struct session early = open_on(&world.thread), late = open_on(&world.thread);
    assert_int_equal(feed(&early, GET("/small.html")), SESSION_WAIT);
    assert_ptr_equal(next_ready(&world.thread), &early);
    fill(true);
    assert_served(&early, session_resume(&early, world.now_ns), "HTTP/1.1 404 Not Found\r\n");
    world.thread.turn.reported = true;
    assert_served(&late, feed(&late, GET("/small.html")), "HTTP/1.1 200 OK\r\n");
    session_close(&early);
    session_close(&late);
}

/* ---- listings ---- */

static void a_listing_stops_only_its_client(void **state)
{
    (void)state;
    disk.cold = false;
    hold_names(true);
    struct session slow = open_on(&world.thread), other = open_on(&world.thread);
    assert_int_equal(feed(&slow, LIST), SESSION_WAIT);
    wait_for_name();
    assert_served(&other, feed(&other, GET("/middle.bin")), "HTTP/1.1 200 OK\r\n");
    assert_null(session_thread_next_ready(&world.thread));
    hold_names(false);
    assert_served(&slow, SESSION_WAIT, "HTTP/1.1 200 OK\r\n");
    assert_true(answers_in("4.txt") > 0);
    assert_int_equal(world.shared.listings.count, 0);
    session_close(&slow);
    session_close(&other);
}

/* The folder itself is not in memory, either. */
static void a_listing_of_a_cold_folder_is_answered(void **state)
{
    (void)state;
    struct session s = open_on(&world.thread);
    assert_served(&s, feed(&s, LIST), "HTTP/1.1 200 OK\r\n");
    assert_true(answers_in("4.txt") > 0);
    session_close(&s);
}

static void a_listing_in_the_cache_needs_no_thread(void **state)
{
    (void)state;
    disk.cold = false;
    struct session s = open_on(&world.thread);
    assert_served(&s, feed(&s, LIST), "HTTP/1.1 200 OK\r\n");
    assert_int_equal(feed(&s, LIST), SESSION_WRITE);
    assert_served(&s, SESSION_WRITE, "HTTP/1.1 200 OK\r\n");
    session_close(&s);
    assert_int_equal(names(), LISTED);
}

/* All of them count as one listing. */
static void one_rendering_serves_all_who_request_the_listing(void **state)
{
    enum { MANY = 20 };
    (void)state;
    struct session sessions[MANY];
    disk.cold = false;
    world.shared.listings.max = 1;
    hold_names(true);
    for (unsigned i = 0; i < MANY; i++) {
        sessions[i] = open_on(i % 2 == 0 ? &world.thread : &world.other);
        assert_int_equal(feed(&sessions[i], LIST), SESSION_WAIT);
    }
    assert_int_equal(world.shared.listings.count, 1);
    hold_names(false);
    serve_all(&world.thread, MANY / 2);
    serve_all(&world.other, MANY / 2);
    for (unsigned i = 0; i < MANY; i++)
        session_close(&sessions[i]);
    assert_int_equal(names(), LISTED);
    assert_int_equal(world.shared.listings.count, 0);
}

static void a_listing_above_the_limit_is_refused(void **state)
{
    (void)state;
    disk.cold = false;
    world.shared.listings.max = 1;
    hold_names(true);
    struct session first = open_on(&world.thread), refused = open_on(&world.other);
    assert_int_equal(feed(&first, LIST), SESSION_WAIT);
    assert_served(&refused, feed(&refused, LIST_BY("size")), "HTTP/1.1 503 ");
    assert_int_equal(answers_in("\r\nRetry-After: 1\r\n"), 1);
    hold_names(false);
    assert_served(&first, SESSION_WAIT, "HTTP/1.1 200 OK\r\n");
    assert_served(&refused, feed(&refused, LIST_BY("size")), "HTTP/1.1 200 OK\r\n");
    session_close(&first);
    session_close(&refused);
}

/* The request waits twice: for the attributes of the folder, and for the page. */
static void a_listing_above_the_limit_gets_the_page_of_the_site(void **state)
{
    (void)state;
    disk.cold = false;
    world.shared.listings.max = 1;
    hold_names(true);
    struct session first = open_on(&world.thread), refused = open_on(&world.other);
    assert_int_equal(feed(&first, LIST), SESSION_WAIT);
    disk.cold = true;
    assert_served(&refused, feed(&refused, LIST_BY("size")), "HTTP/1.1 503 ");
    assert_int_equal(answers_in(BUSY_PAGE), 1);
    assert_int_equal(answers_in("\r\nRetry-After: 1\r\n"), 1);
    assert_int_equal(refused.thread->stats.block->counter[STATS_listings_refused], 1);
    hold_names(false);
    assert_served(&first, SESSION_WAIT, "HTTP/1.1 200 OK\r\n");
    session_close(&first);
    session_close(&refused);
}

/* Its client has left: the names that follow are not measured. */
static void a_listing_without_a_client_ends(void **state)
{
    (void)state;
    disk.cold = false;
    hold_names(true);
    struct session s = open_on(&world.thread);
    assert_int_equal(feed(&s, LIST), SESSION_WAIT);
    wait_for_name();
    session_close(&s);
    hold_names(false);
    while (atomic_load(&world.shared.listings.count) > 0)
        usleep(1000);
    assert_int_equal(names(), 1);
}

/* The listing goes on for a client that comes after the first one has left. */
static void a_listing_may_change_its_client(void **state)
{
    (void)state;
    disk.cold = false;
    hold_names(true);
    struct session first = open_on(&world.thread), second = open_on(&world.other);
    assert_int_equal(feed(&first, LIST), SESSION_WAIT);
    wait_for_name();
    session_close(&first);
    assert_int_equal(feed(&second, LIST), SESSION_WAIT);
    hold_names(false);
    assert_served(&second, SESSION_WAIT, "HTTP/1.1 200 OK\r\n");
    assert_true(answers_in("4.txt") > 0);
    session_close(&second);
    assert_int_equal(names(), LISTED);
}

/* Two answers have one listing that the cache does not keep. Each counts until it is sent. */
static void a_shared_listing_outside_of_the_cache_counts_until_it_is_sent(void **state)
{
    (void)state;
    use_no_cache();
    disk.cold = false;
    world.shared.listings.max = 1;
    hold_names(true);
    struct session first = open_on(&world.thread), second = open_on(&world.thread);
    assert_int_equal(feed(&first, LIST), SESSION_WAIT);
    assert_int_equal(feed(&second, LIST), SESSION_WAIT);
    hold_names(false);
    unsigned answered = 0;
    while (answered < 2)
        answered += session_resume(next_ready(&world.thread), world.now_ns) == SESSION_WRITE;
    assert_int_equal(world.shared.listings.count, 2);
    struct session refused = open_on(&world.other);
    assert_served(&refused, feed(&refused, LIST_BY("size")), "HTTP/1.1 503 ");
    assert_served(&first, SESSION_WRITE, "HTTP/1.1 200 OK\r\n");
    assert_int_equal(world.shared.listings.count, 1);
    session_close(&second);
    assert_int_equal(world.shared.listings.count, 0);
    session_close(&first);
    session_close(&refused);
}

/* ---- HTTP/2 ---- */

static unsigned frames_of(unsigned type, uint32_t stream)
{
    unsigned count = 0;
    struct http2_frame frame;
    for (size_t at = 0; at < client.in.len; at += HTTP2_FRAME_HEAD + frame.length) {
        frame = http2_frame_read(client.in.at + at);
        count += frame.type == type && frame.stream == stream;
    }
    return count;
}

static void only_the_stream_waits_in_http2(void **state)
{
    (void)state;
    hold("small.html");
    begin(LARGEST);
    const uint32_t slow = add_get("/small.html"), fast = add_get("/middle.bin");
    send_frames();
    receive(SIZE_MAX);
    assert_int_equal(frames_of(HTTP2_FRAME_HEADERS, slow), 0);
    assert_int_equal(frames_of(HTTP2_FRAME_HEADERS, fast), 1);
    assert_true(session_is_pending(&client.s));
    hold(NULL);
    client.want = resume_ready(&client.s);
    receive(SIZE_MAX);
    assert_int_equal(frames_of(HTTP2_FRAME_HEADERS, slow), 1);
    assert_false(session_is_pending(&client.s));
    session_close(&client.s);
}

static void a_reset_stream_waits_no_longer(void **state)
{
    (void)state;
    static const char cancel[4] = { 0, 0, 0, 8 };
    hold("small.html");
    begin(LARGEST);
    const uint32_t first = add_get("/small.html"), second = add_get("/small.html");
    send_frames();
    add_frame(HTTP2_FRAME_RST_STREAM, 0, first, span_of(cancel, sizeof(cancel)));
    send_frames();
    assert_true(session_is_pending(&client.s));
    hold(NULL);
    client.want = resume_ready(&client.s);
    receive(SIZE_MAX);
    assert_int_equal(frames_of(HTTP2_FRAME_HEADERS, first), 0);
    assert_int_equal(frames_of(HTTP2_FRAME_HEADERS, second), 1);
    assert_false(session_is_pending(&client.s));
    session_close(&client.s);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, make_cold_world, end_cold_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WORLD(a_file_that_is_not_in_memory_stops_only_its_client),
        WITH_WORLD(a_file_in_memory_is_answered_at_once),
        WITH_WORLD(one_fetch_serves_all_who_request_the_path),
        WITH_WORLD(all_are_answered_without_a_cache),
        WITH_WORLD(a_client_that_leaves_leaves_nothing),
        WITH_WORLD(the_next_request_takes_what_the_first_has_left),
        WITH_WORLD(an_answer_is_not_pending_without_end),
        WITH_WORLD(a_full_queue_refuses),
        WITH_WORLD(pipelined_answers_keep_their_order),
        WITH_WORLD(a_body_follows_a_request_that_waits),
        WITH_WORLD(a_drain_waits_for_the_answer),
        WITH_WORLD(a_stale_entry_is_used_while_one_request_compares_it),
        WITH_WORLD(a_file_that_has_changed_is_answered_in_its_new_version),
        WITH_WORLD(a_comparison_without_a_client_is_made_by_the_next_request),
        WITH_WORLD(a_late_request_does_not_get_an_early_result),
        WITH_WORLD(a_file_that_appears_is_found_by_the_next_request),
        WITH_WORLD(an_early_result_proves_nothing_for_its_turn),
        WITH_WORLD(a_listing_stops_only_its_client),
        WITH_WORLD(a_listing_of_a_cold_folder_is_answered),
        WITH_WORLD(a_listing_in_the_cache_needs_no_thread),
        WITH_WORLD(one_rendering_serves_all_who_request_the_listing),
        WITH_WORLD(a_listing_above_the_limit_is_refused),
        WITH_WORLD(a_listing_above_the_limit_gets_the_page_of_the_site),
        WITH_WORLD(a_listing_without_a_client_ends),
        WITH_WORLD(a_listing_may_change_its_client),
        WITH_WORLD(a_shared_listing_outside_of_the_cache_counts_until_it_is_sent),
        WITH_WORLD(only_the_stream_waits_in_http2),
        WITH_WORLD(a_reset_stream_waits_no_longer),
    };
    return cmocka_run_group_tests_name("session/fetch", tests, NULL, NULL);
}
