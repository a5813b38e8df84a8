/* SPDX-License-Identifier: MIT
 *
 * `weir trace`: answers one request as the server does, and explains the answer. It has no
 * side effects, except what the running server logs with --live.
 */
#include "trace/trace.h"

#include "base/buf.h"
#include "peer/address.h"
#include "program/command.h"
#include "program/configuration.h"
#include "program/control.h"
#include "program/start.h"
#include "trace/http2.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct trace_options {
    struct program_configuration configuration;
    const char *control;       /* or NULL */
    struct option_list fields; /* "Name: value" */
    const char *method, *host; /* or NULL */
    const char *version;       /* of HTTP, or NULL */
    const char *from;          /* the client's address, or NULL */
    bool live, json;
    struct option_list arguments; /* the path, and DIR, FILE or PID */
};

static const struct option trace_rows[] = {
    { "control", 0, "PATH", PROGRAM_CONTROL_SENTENCE, OPTION_TEXT,
      OPTION_INTO(trace_options, control) },
    { "request-header", 'H', "FIELD", "send this field, `Name: value`; may be repeated",
      OPTION_LIST, OPTION_INTO(trace_options, fields) },
    { "method", 0, "METHOD", "request with this method rather than GET", OPTION_TEXT,
      OPTION_INTO(trace_options, method) },
    { "host", 0, "NAME", "request this host name", OPTION_TEXT, OPTION_INTO(trace_options, host) },
    { "from", 0, "ADDRESS", "request from this address; rules with networks depend on it",
      OPTION_TEXT, OPTION_INTO(trace_options, from) },
    { "http-version", 0, "1.1|2",
      "request over this version; 2 with --live needs TLS or `h2c = on`", OPTION_TEXT,
      OPTION_INTO(trace_options, version) },
    { "live", 0, NULL, "send the request to the running server too, and compare", OPTION_PRESENT,
      OPTION_INTO(trace_options, live) },
    { "json", 0, NULL, "print one JSON object", OPTION_PRESENT, OPTION_INTO(trace_options, json) },
    { .name = NULL },
};

static const struct option_group trace_groups[] = {
    { .title = "Options",
      .options = program_configuration_file,
      .offset = offsetof(struct trace_options, configuration) },
    { .options = trace_rows },
    { .options = option_answers },
    PROGRAM_CONFIGURATION_FLAGS(offsetof(struct trace_options, configuration)),
    { .options = NULL },
};

/* One trace: the request, and the configuration that answers it. */
struct tracing {
    const struct trace_options *options;
    const char *target;         /* the path or URL */
    const char *second;         /* DIR, FILE or PID; or NULL */
    struct program_start start; /* of the running server */
    struct config_request configuration;
    struct program_master master;
    struct trace trace;
    struct session_peer peer; /* the client */
    char host[512];
    char bytes[TRACE_REQUEST_MAX];
};

static int refuse_request(const char *what, const char *why)
{
    fprintf(stderr, "weir: `%s` %s\n", what, why);
    return PROGRAM_USAGE;
}

static bool is_http2(const struct trace_options *options)
{
    return options->version && strcmp(options->version, "2") == 0;
}

static int refuse_end_of_line(void)
{
    fputs("weir: a part of the request contains an end of line, which would make two lines of it\n",
          stderr);
    return PROGRAM_USAGE;
}

/* ---- the request ---- */

static bool has_end_of_line(const char *text)
{
    for (; *text; text++)
        if (*text == '\r' || *text == '\n')
            return true;
    return false;
}

/* Refuses words that would make another request than the one meant. */
static int check_words(const struct trace_options *options, const char *target)
{
    if (!target) {
        fputs("weir: nothing to trace; give a path: weir trace /index.html\n", stderr);
        return PROGRAM_USAGE;
    }
    if (target[0] != '/' && strcmp(target, "*") != 0 && !strstr(target, "://"))
        return refuse_request(target, "is no path; it begins with a slash, or is a URL");
    if (options->version && !is_http2(options) && strcmp(options->version, "1.1") != 0)
        return refuse_request(options->version, "is no version of HTTP for a trace; give 1.1 or 2");
    const char *words[] = { target, options->method ? options->method : "",
                            options->host ? options->host : "" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (has_end_of_line(words[i]))
            return refuse_end_of_line();
    for (size_t i = 0; i < options->fields.count; i++) {
        if (has_end_of_line(options->fields.at[i]))
            return refuse_end_of_line();
        if (!strchr(options->fields.at[i], ':'))
            return refuse_request(options->fields.at[i],
                                  "is no field; write it as -H 'Name: value'");
    }
    return PROGRAM_OK;
}

/* The value of a field of the command line; `name` includes the colon. NULL: there is none. */
static const char *given_field(const struct trace_options *options, struct span name)
{
    for (size_t i = 0; i < options->fields.count; i++)
        if (span_equal_nocase(span_first(span_text(options->fields.at[i]), name.len), name))
            return options->fields.at[i] + name.len;
    return NULL;
}

/* `localhost` where a site answers for any host; else the first name of the first site. */
static const char *any_host(const struct config *config)
{
    for (unsigned i = 0; i < config->site_count; i++)
        if (!config->sites[i].hosts || !config->sites[i].hosts[0])
            return "localhost";
    return config->sites[0].hosts[0];
}

static const char *choose_host(struct tracing *tracing, const struct config *config)
{
    const struct trace_options *options = tracing->options;
    const char *scheme = strstr(tracing->target, "://");
    if (options->host)
        return options->host;
    if (scheme && tracing->target[0] != '/')
        (void)snprintf(tracing->host, sizeof(tracing->host), "%.*s",
                       (int)strcspn(scheme + 3, "/?#"), scheme + 3);
    else
        (void)snprintf(tracing->host, sizeof(tracing->host), "%s", any_host(config));
    if (tracing->host[0] == '*')
        memcpy(tracing->host, "x", 1);
    return tracing->host;
}

/* The target in a request line. HTTP/2 has no URL there: the host is a field of its own. */
static struct span line_target(const struct tracing *tracing)
{
    const char *scheme = strstr(tracing->target, "://");
    if (!is_http2(tracing->options) || !scheme || tracing->target[0] == '/')
        return span_text(tracing->target);
    const char *path = scheme + 3 + strcspn(scheme + 3, "/?#");
    return path[0] ? span_text(path) : SPAN("/");
}

static int write_request(struct tracing *tracing, const struct config *config)
{
    const struct trace_options *options = tracing->options;
    struct trace *trace = &tracing->trace;
    struct buf text = buf_over(tracing->bytes, sizeof(tracing->bytes));
    const char *host = given_field(options, SPAN("Host:"));
    trace->method = options->method ? options->method : "GET";
    trace->target = tracing->target;
    trace->host = host && !options->host ? host + strspn(host, " \t")
                                         : choose_host(tracing, config);
    buf_add(&text, span_text(trace->method));
    buf_add(&text, SPAN(" "));
    buf_add(&text, line_target(tracing));
    buf_add(&text, SPAN(" HTTP/1.1\r\n"));
    if (!host || options->host) {
        buf_add(&text, SPAN("Host: "));
        buf_add(&text, span_text(trace->host));
        buf_add(&text, SPAN("\r\n"));
    }
    if (!given_field(options, SPAN("User-Agent:")))
        buf_add(&text, SPAN("User-Agent: weir-trace/" WEIR_VERSION "\r\n"));
    for (size_t i = 0; i < options->fields.count; i++) {
        buf_add(&text, span_text(options->fields.at[i]));
        buf_add(&text, SPAN("\r\n"));
    }
    buf_add(&text, SPAN("\r\n"));
    trace->request = buf_span(&text);
    return text.overflow
               ? refuse_request(trace->target, "and its fields are longer than the server reads "
                                               "at once")
               : PROGRAM_OK;
}

/* Makes the frames of the request. From here on `request` is what the server decodes. */
static int frame_request(struct tracing *tracing)
{
    struct trace *trace = &tracing->trace;
    if (!is_http2(tracing->options))
        return PROGRAM_OK;
    const struct span scheme = trace_is_over_tls(&trace->live) ? SPAN("https") : SPAN("http");
    trace->http2 = trace_http2_new(trace->request, scheme);
    if (!trace->http2) {
        fputs("weir: out of memory\n", stderr);
        return PROGRAM_FAILED;
    }
    trace->request = trace_http2_text(trace->http2);
    return PROGRAM_OK;
}

/* The address of the client. Without --from, it is that of this machine which reaches the running
 * server, or 127.0.0.1. */
static int choose_client(struct tracing *tracing)
{
    struct trace *trace = &tracing->trace;
    struct peer_address address;
    const char *from = tracing->options->from;
    const bool is_unix = span_starts(span_text(trace->live.url), SPAN("unix:"));
    trace->from = from                           ? from
                  : is_unix                      ? "a client of a Unix socket"
                  : strchr(trace->live.url, '[') ? "::1"
                                                 : "127.0.0.1";
    if (!from && is_unix)
        return PROGRAM_OK;
    if (!peer_address_parse(span_text(trace->from), &address))
        return refuse_request(from, "is no address; write it as 192.0.2.7 or 2001:db8::7");
    tracing->peer.family = address.family;
    memcpy(tracing->peer.address, address.bytes, sizeof(address.bytes));
    return PROGRAM_OK;
}

/* ---- the configuration ---- */

static bool is_number(const char *text)
{
    return text && text[0] && text[strspn(text, "0123456789")] == '\0';
}

static int find_server(struct tracing *tracing)
{
    struct trace_live *live = &tracing->trace.live;
    const char *pid = is_number(tracing->second) ? tracing->second : NULL;
    int status =
        program_control_find("trace --live PATH", tracing->options->control, pid, &tracing->master);
    if (status != PROGRAM_OK)
        return status;
    live->pid = (int)tracing->master.pid;
    const enum program_control_answer answer =
        program_control_url(&tracing->master, live->url, sizeof(live->url));
    if (live->url[0] != '\0')
        return PROGRAM_OK;
    fprintf(stderr, "weir: process %d %s\n", live->pid,
            answer == PROGRAM_CONTROL_CUT
                ? "does not answer at its control socket; it may hang, or be ending"
                : "names no address, and `weir trace --live` needs one");
    return PROGRAM_FAILED;
}

/* The folder or file of the command line; without one, that of the live server or ./weir.conf. */
static int choose_configuration(struct tracing *tracing)
{
    const struct trace_options *options = tracing->options;
    struct config_request *request = &tracing->configuration;
    const char *second = options->live && is_number(tracing->second) ? NULL : tracing->second;
    struct stat info;
    *request =
        program_configuration_request(&options->configuration, options->configuration.file, second);
    if (second && !request->file && stat(second, &info) == 0 && S_ISREG(info.st_mode)) {
        request->file = second;
        request->folder = NULL;
    }
    if (request->file || request->folder)
        return PROGRAM_OK;
    if (options->live) {
        const struct program_serve_options *started = &tracing->start.options;
        int status = program_start_read(tracing->trace.live.pid, &tracing->start);
        *request = program_configuration_request(&started->configuration,
                                                 started->configuration.file,
                                                 program_command_argument(&started->folder));
        request->environment = tracing->start.environment;
        if (!request->file && !request->folder)
            request->file = program_configuration_default();
        return status;
    }
    request->file = program_configuration_default();
    if (request->file)
        return PROGRAM_OK;
    fputs("weir: nothing to trace in; give a folder or a configuration: weir trace PATH DIR, or "
          "-c FILE\n",
          stderr);
    return PROGRAM_USAGE;
}

/* ---- the trace ---- */

/* Another user may read other files than the server. */
static void note_user(struct trace *trace)
{
    const char *user = trace->config->user;
    if (user && geteuid() != 0)
        trace_add(trace, "user",
                  "the server becomes %s; asked as root, this would too, and may read other "
                  "files",
                  user);
}

/* Asks the running server. This is done before the trace changes its user as a worker does: the
 * other user may not reach the server's Unix socket. */
static int ask_server(struct tracing *tracing)
{
    struct trace *trace = &tracing->trace;
    struct trace_live *live = &trace->live;
    if (tracing->options->live && trace->http2 && !trace->config->h2c && !trace_is_over_tls(live)) {
        fprintf(stderr,
                "weir: %s has no TLS, and `h2c` is off in this configuration, so the server does "
                "not speak HTTP/2 there\n",
                live->url);
        return PROGRAM_FAILED;
    }
    int rc = tracing->options->live ? trace_ask(live, trace->request, trace->http2, trace->host)
                                    : 0;
    if (rc == 0)
        return PROGRAM_OK;
    if (rc == -EPROTO)
        fprintf(stderr, "weir: process %d at %s: %.*s\n", live->pid, live->url, (int)live->head_len,
                live->head);
    else
        fprintf(stderr, "weir: process %d does not answer at %s: %s\n", trace->live.pid,
                trace->live.url, strerror(-rc));
    return PROGRAM_FAILED;
}

static int explain_answer(struct tracing *tracing)
{
    struct trace *trace = &tracing->trace;
    const struct trace_answer *answer = trace->answer;
    const struct session_site *site = answer->trace.site;
    if (answer->head_len == 0) {
        fprintf(stderr, "weir: cannot trace %s: %s\n", trace->target, answer->why);
        return PROGRAM_FAILED;
    }
    if (site)
        trace->site = &trace->config->sites[site - answer->holdings.sites];
    note_user(trace);
    trace_explain(trace);
    if (tracing->options->json)
        trace_print_json(trace, stdout);
    else
        trace_print_text(trace, stdout);
    trace_forget(trace);
    return PROGRAM_OK;
}

static int trace_in(struct tracing *tracing, const struct config_store *store)
{
    struct trace *trace = &tracing->trace;
    if (config_read_errors(store) > 0) {
        config_read_print_problems(store, CONFIG_PROBLEMS_SHOWN, stderr);
        return config_read_flag_errors(store) > 0 ? PROGRAM_USAGE : PROGRAM_FAILED;
    }
    trace->config = config_read_result(store);
    int status = choose_client(tracing);
    if (status == PROGRAM_OK)
        status = write_request(tracing, trace->config);
    if (status == PROGRAM_OK)
        status = frame_request(tracing);
    if (status == PROGRAM_OK)
        status = ask_server(tracing);
    if (status != PROGRAM_OK)
        return status;
    struct trace_answer *answer = trace_answer_new(trace->config, trace->request, trace->http2,
                                                   tracing->peer, trace_is_over_tls(&trace->live));
    if (!answer) {
        fputs("weir: out of memory\n", stderr);
        return PROGRAM_FAILED;
    }
    trace->answer = answer;
    status = explain_answer(tracing);
    trace_answer_free(answer);
    return status;
}

static int run_trace(void *given, const char *const *words)
{
    (void)words;
    const struct trace_options *options = given;
    const char *target = program_command_argument(&options->arguments);
    int status = check_words(options, target);
    if (status != PROGRAM_OK)
        return status;
    struct tracing *tracing = calloc(1, sizeof(*tracing));
    if (!tracing) {
        fputs("weir: out of memory\n", stderr);
        return PROGRAM_FAILED;
    }
    tracing->options = options;
    tracing->target = target;
    tracing->second = options->arguments.count > 1 ? options->arguments.at[1] : NULL;
    if (options->live)
        status = find_server(tracing);
    if (status == PROGRAM_OK)
        status = choose_configuration(tracing);
    if (status == PROGRAM_OK) {
        struct config_store *store = config_read(&tracing->configuration);
        status = trace_in(tracing, store);
        config_read_free(store);
    }
    program_start_done(&tracing->start);
    trace_http2_free(tracing->trace.http2);
    free(tracing);
    return status;
}

const struct program_command program_trace = {
    .options = { .name = "trace",
                 .groups = trace_groups,
                 .elsewhere = program_serve_elsewhere,
                 .explain = program_configuration_explain,
                 .arguments_offset = offsetof(struct trace_options, arguments),
                 .arguments_most = 2 },
    .brief = "PATH ...",
    .usage = "PATH [-H FIELD]... [DIR|-c FILE|PID] [--live] [OPTION]...",
    .sentence = "explain how a request would be answered",
    .text = "Answers one request with the code of `weir serve`, and explains the answer: its\n"
            "site, path, file, encoding, conditions and cache; for a status other than 200\n"
            "the exact cause; and the head of the response. DIR, FILE and the options are\n"
            "those of `weir serve`; without them it is ./weir.conf. It writes nothing and\n"
            "needs no server.\n"
            "\n"
            "With --http-version 2 the request is one of HTTP/2, and the head of the answer is\n"
            "decoded from its header block.\n"
            "\n"
            "With --live the request also goes to the running server, over its own address,\n"
            "and the two answers are compared. Without DIR and FILE the expected answer comes\n"
            "from the command line of that server. PID names one of several servers.\n"
            "\n"
            "Exit status: 0 when there is an answer, of any status; 1 when there is none (no\n"
            "server, a configuration with errors); 2 when the command line is wrong, or\n"
            "several servers run.\n"
            "\n"
            "Examples:\n"
            "  weir trace /a.css public             in the folder `public`\n"
            "  weir trace /a.css -c weir.conf --host example.org\n"
            "  weir trace /a.css . -H 'Accept-Encoding: br, gzip'\n"
            "  weir trace --live /a.css             does the server do what it should?\n",
    .size = sizeof(struct trace_options),
    .run = run_trace,
};
