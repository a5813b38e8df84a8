/* SPDX-License-Identifier: MIT
 *
 * Runs every case of cases/ against the session itself: no socket, no clock, no server. Each case
 * is played whole, byte by byte, and at random splits with random short writes, with the cache and
 * without, plain and over TLS. All must give the same bytes, and these must be what the case
 * expects. Over HTTP/2 the same requests must get the same answers (spelling.h). A first pass has
 * the files in memory. A second pass sends each file from its descriptor. Each pass ends with
 * 50,000 paths that try to leave the root (traversal.h).
 *
 * A handshake costs more than all plain plays of a case. So over TLS each way of splitting is
 * played in one of the two passes, and in both passes other seeds are.
 *
 *     conformance CASES [--only TEXT] [--seed N] [--splits N] [--list]
 */
#include "base/num.h"
#include "play.h"
#include "serve.h"
#include "spelling.h"
#include "traversal.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Paths that each pass tries. */
enum { TRAVERSALS = 50 * 1000 };

/* Where the files are in one pass over all cases. */
struct pass {
    const char *name;
    size_t body_max;
    enum play_transport bytes_over; /* the kind of TLS over which bytes arrive one by one */
};

static const struct pass passes[] = {
    { "in memory", (size_t)1024 * 1024, PLAY_TLS },
    { "from the file", 0, PLAY_SETTLED },
};

struct run {
    struct fixture fixture;
    const struct pass *pass;
    struct serve cached, plain;
    struct cases cases;
    struct escape_tags tags;
    char tag[256]; /* the last answer of tags.etag */
    const char *only;
    uint64_t seed;
    uint64_t splits;
    unsigned passed, failed, skipped;
    unsigned spelled; /* plays over HTTP/2 */
};

/* Requests the entity tag of a file from the session. */
static struct span ask_etag(void *context, struct span path)
{
    struct run *run = context;
    char request[512];
    int len = snprintf(request, sizeof request, "HEAD /%.*s HTTP/1.1\r\nHost: a\r\n\r\n",
                       (int)path.len, path.at);
    struct play_input input = { .bytes = span_of(request, (size_t)len) };
    struct play_result result = play_connection(&run->cached.worker, input);
    struct span tag = answer_first_field(span_of(result.bytes, result.len), SPAN("ETag"));
    struct span kept = span_of(run->tag, tag.len < sizeof run->tag ? tag.len : 0);
    memcpy(run->tag, tag.at, kept.len);
    free(result.bytes);
    return kept;
}

static void report(struct run *run, const struct cases_case *c, const char *text)
{
    run->failed++;
    (void)printf("FAILED %s:%d: %s (%s)\n%s", c->file, c->line, c->title, run->pass->name, text);
}

/* Plays a connection of the case. Each play begins without remembered passwords. */
static struct play_result play_case(struct session_thread *worker, const struct cases_case *c,
                                    struct play_input input)
{
    if (memmem(c->request, c->request_len, "uthorization: ", strlen("uthorization: ")))
        serve_forget(worker);
    return play_connection(worker, input);
}

static const char *const transports[] = {
    [PLAY_PLAIN] = "",
    [PLAY_TLS] = "over TLS, ",
    [PLAY_SETTLED] = "over settled TLS, ",
};

/* Plays one variation, and reports how its bytes differ from the first, whole one. */
static bool agrees(struct session_thread *worker, const struct cases_case *c,
                   const struct play_result *first, struct play_input input, FILE *out)
{
    input.bytes = span_of(c->request, c->request_len);
    input.end = c->end;
    enum play_style style = input.style;
    uint64_t seed = input.seed;
    struct play_result again = play_case(worker, c, input);
    bool same = !again.broken && again.state == first->state && again.len == first->len &&
                memcmp(again.bytes, first->bytes, first->len) == 0;
    if (!same) {
        size_t at = 0;
        while (at < again.len && at < first->len && again.bytes[at] == first->bytes[at])
            at++;
        size_t from = at < 40 ? 0 : at - 40;
        (void)fprintf(out, "    %s%s (seed %llu): %s; %zu bytes and %s, whole %zu and %s\n",
                      transports[input.transport],
                      style == PLAY_WHOLE   ? "another worker"
                      : style == PLAY_BYTES ? "byte by byte"
                                            : "split at random",
                      (unsigned long long)seed, again.broken ? again.broken : "differs", again.len,
                      answer_state_name(again.state), first->len, answer_state_name(first->state));
        (void)fprintf(out, "    from byte %zu: ", from);
        escape_show(out, span_of(again.bytes + from, again.len - from), 120);
        (void)fputs("\n    whole: ", out);
        escape_show(out, span_of(first->bytes + from, first->len - from), 120);
        (void)fputc('\n', out);
    }
    free(again.bytes);
    return same;
}

/* Seed number `n`. Each pass has seeds of its own. The first one is even in one pass, odd in the
 * other. */
static uint64_t seed_of(const struct run *run, uint64_t n)
{
    return run->seed + n + (run->splits | 1) * (uint64_t)(run->pass - passes);
}

static bool all_agree(struct run *run, const struct cases_case *c, const struct play_result *first,
                      FILE *out)
{
    struct session_thread *cached = &run->cached.worker, *plain = &run->plain.worker;
    for (unsigned i = PLAY_PLAIN; i <= PLAY_SETTLED; i++) {
        enum play_transport transport = (enum play_transport)i;
        struct play_input whole = { .style = PLAY_WHOLE, .transport = transport };
        struct play_input bytes = { .style = PLAY_BYTES, .transport = transport };
        bool is_plain = transport == PLAY_PLAIN;
        if ((is_plain && !agrees(plain, c, first, whole, out)) ||
            ((is_plain || transport == run->pass->bytes_over) &&
             !agrees(cached, c, first, bytes, out)))
            return false;
        uint64_t splits = is_plain ? run->splits : run->splits / 8;
        for (uint64_t n = 0; n < splits; n++) {
            struct play_input split = { .style = PLAY_RANDOM,
                                        .seed = seed_of(run, n),
                                        .transport = transport };
            if (!agrees(split.seed % 2 ? plain : cached, c, first, split, out))
                return false;
        }
    }
    return true;
}

/* Plays the second spelling once, and reports how its answers differ from those of the first. */
static bool agrees_in_http2(struct run *run, struct serve *serve, const struct cases_case *c,
                            const struct play_result *first, struct play_input input, FILE *out)
{
    struct spelling *spelling = spelling_new(c);
    if (!spelling)
        return true;
    run->spelled++;
    input.bytes = spelling_input(spelling);
    input.end = c->end;
    input.http2 = true;
    serve->shared.h2c = true;
    struct play_result result = play_case(&serve->worker, c, input);
    serve->shared.h2c = false;
    unsigned wrong = spelling_check(spelling, span_of(result.bytes, result.len),
                                    span_of(first->bytes, first->len), out);
    wrong += result.broken || (result.state == ANSWER_CLOSED && c->end == CASES_END_NOTHING);
    if (wrong > 0)
        (void)fprintf(out, "    over HTTP/2%s, style %d (seed %llu): %s, %s\n",
                      input.transport == PLAY_TLS ? " and TLS" : "", (int)input.style,
                      (unsigned long long)input.seed, result.broken ? result.broken : "differs",
                      answer_state_name(result.state));
    free(result.bytes);
    spelling_free(spelling);
    return wrong == 0;
}

static bool all_agree_in_http2(struct run *run, const struct cases_case *c,
                               const struct play_result *first, FILE *out)
{
    struct serve *cached = &run->cached, *plain = &run->plain;
    for (unsigned t = PLAY_PLAIN; t <= PLAY_TLS; t++) {
        enum play_transport transport = (enum play_transport)t;
        struct play_input whole = { .style = PLAY_WHOLE, .transport = transport };
        struct play_input bytes = { .style = PLAY_BYTES, .transport = transport };
        bool is_plain = transport == PLAY_PLAIN, in_bytes = run->pass->bytes_over == PLAY_TLS;
        if (((is_plain || !in_bytes) && !agrees_in_http2(run, cached, c, first, whole, out)) ||
            ((is_plain || in_bytes) && !agrees_in_http2(run, plain, c, first, bytes, out)))
            return false;
        for (uint64_t i = 0; i < run->splits / (is_plain ? 4 : 8); i++) {
            struct play_input split = { .style = PLAY_RANDOM,
                                        .seed = seed_of(run, i),
                                        .transport = transport };
            if (!agrees_in_http2(run, split.seed % 2 ? plain : cached, c, first, split, out))
                return false;
        }
    }
    return true;
}

static void show_answer(FILE *out, const struct play_result *result)
{
    (void)fputs("    --- the answer\n", out);
    escape_show(out, span_of(result->bytes, result->len), 1200);
    (void)fputs("\n    ---\n", out);
}

static void run_case(struct run *run, const struct cases_case *c)
{
    char *text = NULL;
    size_t text_len = 0;
    FILE *out = open_memstream(&text, &text_len);
    CHECK(out);
    struct play_input input = { .bytes = span_of(c->request, c->request_len), .end = c->end };
    struct play_result first = play_case(&run->cached.worker, c, input);
    bool good = !first.broken;
    if (first.broken)
        (void)fprintf(out, "    the session %s\n", first.broken);
    else if (answer_check(c, &run->fixture, &run->tags, span_of(first.bytes, first.len),
                          first.state, out) > 0)
        good = false;
    else
        good = all_agree(run, c, &first, out) && all_agree_in_http2(run, c, &first, out);
    if (!good)
        show_answer(out, &first);
    CHECK(fclose(out) == 0);
    if (good)
        run->passed++;
    else
        report(run, c, text);
    free(text);
    free(first.bytes);
}

/* Cases that request files which this process must not be able to read. */
static bool needs_modes(const struct cases_case *c)
{
    return memmem(c->request, c->request_len, "/noperm", strlen("/noperm")) != NULL;
}

static void run_cases(struct run *run)
{
    for (size_t i = 0; i < run->cases.count; i++) {
        const struct cases_case *c = &run->cases.at[i];
        if (run->only && !strstr(c->title, run->only) && !strstr(c->file, run->only))
            continue;
        if (needs_modes(c) && !run->fixture.unprivileged) {
            run->skipped++;
            (void)printf("SKIPPED %s:%d: %s (this process may read every file)\n", c->file, c->line,
                         c->title);
            continue;
        }
        run_case(run, c);
    }
}

/* Every answer, of any kind, is one line of the access log. */
static void check_log(struct run *run)
{
    size_t before = serve_log_lines(&run->cached);
    size_t answers = 0;
    struct span get = SPAN("GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    for (; answers < 100; answers++) {
        struct play_input input = { .bytes = get,
                                    .style = PLAY_RANDOM,
                                    .seed = run->seed + answers };
        free(play_connection(&run->cached.worker, input).bytes);
    }
    size_t lines = serve_log_lines(&run->cached) - before;
    if (lines == answers) {
        run->passed++;
        return;
    }
    run->failed++;
    (void)printf("FAILED: %zu answers made %zu lines in the access log\n", answers, lines);
}

/* Of very many paths none leads outside the root. */
static void check_traversal(struct run *run)
{
    if (run->only)
        return;
    unsigned bad = traversal_try(&run->cached, TRAVERSALS / 2, run->seed);
    bad += traversal_try(&run->plain, TRAVERSALS / 2, run->seed + TRAVERSALS);
    if (bad == 0)
        run->passed++;
    else
        run->failed++;
}

static void list_cases(const struct cases *cases)
{
    for (size_t i = 0; i < cases->count; i++)
        (void)printf("%s:%d: %s\n", cases->at[i].file, cases->at[i].line, cases->at[i].title);
}

static int run_pass(struct run *run, const char *folder, bool list)
{
    size_t cache_bytes = (size_t)16 * 1024 * 1024;
    int result = serve_start(&run->cached, &run->fixture, cache_bytes, run->pass->body_max);
    if (result == 0)
        result = serve_start(&run->plain, &run->fixture, 0, run->pass->body_max);
    if (result == 0) {
        fixture_regain_rights();
        result = cases_read(&run->cases, folder, &run->tags);
        fixture_give_up_rights(&run->fixture);
    }
    if (result == 0 && list) {
        list_cases(&run->cases);
    } else if (result == 0) {
        run_cases(run);
        check_log(run);
        check_traversal(run);
    }
    cases_done(&run->cases);
    serve_stop(&run->plain);
    serve_stop(&run->cached);
    return result;
}

static int run_passes(struct run *run, const char *folder, bool list)
{
    int result = 0;
    for (size_t i = 0; i < sizeof(passes) / sizeof(*passes) && result == 0; i++) {
        run->pass = &passes[i];
        result = run_pass(run, folder, list);
        if (list)
            return result;
    }
    (void)printf("%u passed, %u failed, %u skipped, %u plays over HTTP/2 (seed %llu)\n",
                 run->passed, run->failed, run->skipped, run->spelled,
                 (unsigned long long)run->seed);
    return result != 0 || run->failed > 0 ? 1 : 0;
}

/* In a child process, so that the parent removes the folder also after a crash. */
static int run_apart(struct run *run, const char *folder, bool list)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        int result = run_passes(run, folder, list);
        fixture_regain_rights();
        exit(result);
    }
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    (void)printf("FAILED: ended by signal %d (%s)\n", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    return 1;
}

static const char *read_options(struct run *run, int argc, char **argv, bool *ret_list)
{
    const char *folder = NULL;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--list") == 0) {
            *ret_list = true;
        } else if (argv[i][0] != '-' && !folder) {
            folder = argv[i];
        } else if (strcmp(argv[i], "--only") == 0) {
            run->only = value;
            i++;
        } else if ((strcmp(argv[i], "--seed") == 0 &&
                    num_parse_u64(span_text(value), &run->seed)) ||
                   (strcmp(argv[i], "--splits") == 0 &&
                    num_parse_u64(span_text(value), &run->splits))) {
            i++;
        } else {
            return NULL;
        }
    }
    return folder;
}

int main(int argc, char **argv)
{
    struct run run = { .seed = (uint64_t)time(NULL), .splits = 8 };
    const char *environment_seed = getenv("SEED");
    if (environment_seed)
        (void)num_parse_u64(span_text(environment_seed), &run.seed);
    bool list = false;
    const char *folder = read_options(&run, argc, argv, &list);
    if (!folder) {
        (void)fprintf(stderr, "usage: %s CASES [--only TEXT] [--seed N] [--splits N] [--list]\n",
                      argv[0]);
        return 2;
    }
    char description[4096];
    (void)snprintf(description, sizeof(description), "%s/../fixture.txt", folder);
    run.tags = (struct escape_tags){ ask_etag, &run };
    if (fixture_make(&run.fixture, description) != 0)
        return 1;
    int status = run_apart(&run, folder, list);
    fixture_remove(&run.fixture);
    return status;
}
