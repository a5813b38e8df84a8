/* SPDX-License-Identifier: MIT
 *
 * `weir trace`: answers one request as the server would, and tells how it came to
 * that. Without side effects, but for what the running server logs of it (--live).
 */

#include "trace/trace.h"
#include "base/buf.h"
#include "program/control.h"
#include "program/options.h"
#include "program/start.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is asked, and in which configuration. */
struct tracing {
    const struct program_options *options;
    struct program_start start; /* of the running server */
    struct config_request configuration;
    struct program_master master;
    struct trace trace;
    char host[512];
    char bytes[TRACE_REQUEST_MAX];
};

static int refuse(const char *what, const char *why)
{
    fprintf(stderr, "weir: `%s` %s\n", what, why);
    return PROGRAM_USAGE;
}

static int refuse_lines(void)
{
    fputs("weir: a part of the request holds an end of line, and so would be two of them\n",
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

/* What would be another request, or none, is not worth asking. */
static int check_words(const struct program_options *options)
{
    const char *target = options->argument;
    if (!target) {
        fputs("weir: nothing to trace; give a path: weir trace /index.html\n", stderr);
        return PROGRAM_USAGE;
    }
    if (target[0] != '/' && strcmp(target, "*") != 0 && !strstr(target, "://"))
        return refuse(target, "is no path; it begins with a slash, or is a URL");
    const char *words[] = { target, options->method ? options->method : "",
                            options->host ? options->host : "" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (has_end_of_line(words[i]))
            return refuse_lines();
    for (size_t i = 0; i < options->field_count; i++) {
        if (has_end_of_line(options->fields[i]))
            return refuse_lines();
        if (!strchr(options->fields[i], ':'))
            return refuse(options->fields[i], "is no field; write it as -H 'Name: value'");
    }
    return PROGRAM_OK;
}

/* The value of a field that was given, by its name with the colon. */
static const char *given(const struct program_options *options, struct span name)
{
    for (size_t i = 0; i < options->field_count; i++)
        if (span_equal_nocase(span_first(span_text(options->fields[i]), name.len), name))
            return options->fields[i] + name.len;
    return NULL;
}

/* Of those that have names, the first one's; where one answers any, that one is asked. */
static const char *any_host(const struct config *config)
{
    for (unsigned i = 0; i < config->site_count; i++)
        if (!config->sites[i].hosts || !config->sites[i].hosts[0])
            return "localhost";
    return config->sites[0].hosts[0];
}

static const char *choose_host(struct tracing *tracing, const struct config *config)
{
    const struct program_options *options = tracing->options;
    const char *scheme = strstr(options->argument, "://");
    if (options->host)
        return options->host;
    if (scheme && options->argument[0] != '/')
        (void)snprintf(tracing->host, sizeof(tracing->host), "%.*s",
                       (int)strcspn(scheme + 3, "/?#"), scheme + 3);
    else
        (void)snprintf(tracing->host, sizeof(tracing->host), "%s", any_host(config));
    if (tracing->host[0] == '*')
        memcpy(tracing->host, "x", 1);
    return tracing->host;
}

static int write_request(struct tracing *tracing, const struct config *config)
{
    const struct program_options *options = tracing->options;
    struct trace *trace = &tracing->trace;
    struct buf text = buf_over(tracing->bytes, sizeof(tracing->bytes));
    const char *host = given(options, SPAN("Host:"));
    trace->method = options->method ? options->method : "GET";
    trace->target = options->argument;
    trace->host = host && !options->host ? host + strspn(host, " \t")
                                         : choose_host(tracing, config);
    buf_add(&text, span_text(trace->method));
    buf_add(&text, SPAN(" "));
    buf_add(&text, span_text(trace->target));
    buf_add(&text, SPAN(" HTTP/1.1\r\n"));
    if (!host || options->host) {
        buf_add(&text, SPAN("Host: "));
        buf_add(&text, span_text(trace->host));
        buf_add(&text, SPAN("\r\n"));
    }
    if (!given(options, SPAN("User-Agent:")))
        buf_add(&text, SPAN("User-Agent: weir-trace/" WEIR_VERSION "\r\n"));
    for (size_t i = 0; i < options->field_count; i++) {
        buf_add(&text, span_text(options->fields[i]));
        buf_add(&text, SPAN("\r\n"));
    }
    buf_add(&text, SPAN("\r\n"));
    trace->request = buf_span(&text);
    return text.overflow ? refuse(trace->target, "and its fields are longer than one read of the "
                                                 "server's")
                         : PROGRAM_OK;
}

/* ---- the configuration ---- */

static bool is_number(const char *text)
{
    return text && text[0] && text[strspn(text, "0123456789")] == '\0';
}

static int find_server(struct tracing *tracing)
{
    struct program_options whom = *tracing->options;
    struct trace_live *live = &tracing->trace.live;
    whom.argument = is_number(whom.second) ? whom.second : NULL;
    int status = program_control_find("trace --live PATH", &whom, &tracing->master);
    if (status != PROGRAM_OK)
        return status;
    live->pid = (int)tracing->master.pid;
    if (program_control_url(&tracing->master, live->url, sizeof(live->url)))
        return PROGRAM_OK;
    fprintf(stderr, "weir: process %d does not say where it listens\n", live->pid);
    return PROGRAM_FAILED;
}

/* The folder or file that was named, else ./weir.conf. */
static int choose_configuration(struct tracing *tracing)
{
    const struct program_options *options = tracing->options;
    struct config_request *request = &tracing->configuration;
    const char *second = options->live && is_number(options->second) ? NULL : options->second;
    struct stat info;
    *request = (struct config_request){
        .file = options->config_file,
        .folder = second,
        .flags = options->flags,
        .flag_count = options->flag_count,
        .environment = (const char *const *)environ,
    };
    if (second && !options->config_file && stat(second, &info) == 0 && S_ISREG(info.st_mode)) {
        request->file = second;
        request->folder = NULL;
    }
    if (request->file || request->folder)
        return PROGRAM_OK;
    if (options->live) {
        int status = program_start_read(tracing->trace.live.pid, &tracing->start);
        request->environment = tracing->start.environment;
        request->file = tracing->start.options.config_file;
        request->folder = tracing->start.options.argument;
        request->flags = tracing->start.options.flags;
        request->flag_count = tracing->start.options.flag_count;
        return status;
    }
    if (stat("weir.conf", &info) == 0) {
        request->file = "weir.conf";
        return PROGRAM_OK;
    }
    fputs("weir: nothing to trace in; give a folder or a configuration: weir trace PATH DIR, or "
          "-c FILE\n",
          stderr);
    return PROGRAM_USAGE;
}

/* ---- all of it ---- */

/* What the file system allows depends on who asks. */
static void tell_user(struct trace *trace)
{
    const char *user = trace->config->user;
    if (user && geteuid() != 0)
        trace_add(trace, "user",
                  "the server becomes %s; asked as root, this would too, and may read other "
                  "files",
                  user);
}

static int tell(struct tracing *tracing)
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
    int rc = tracing->options->live ? trace_ask(&trace->live, trace->request) : 0;
    if (rc < 0) {
        fprintf(stderr, "weir: process %d does not answer at %s: %s\n", trace->live.pid,
                trace->live.url, strerror(-rc));
        return PROGRAM_FAILED;
    }
    tell_user(trace);
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
        config_read_print_problems(store, stderr);
        return config_read_flag_errors(store) > 0 ? PROGRAM_USAGE : PROGRAM_FAILED;
    }
    trace->config = config_read_result(store);
    int status = write_request(tracing, trace->config);
    if (status != PROGRAM_OK)
        return status;
    struct trace_answer *answer = trace_answer_new(trace->config, trace->request);
    if (!answer) {
        fputs("weir: out of memory\n", stderr);
        return PROGRAM_FAILED;
    }
    trace->answer = answer;
    status = tell(tracing);
    trace_answer_free(answer);
    return status;
}

static int trace(const struct program_command *command, const struct program_options *options)
{
    (void)command;
    int status = check_words(options);
    struct tracing *tracing = status == PROGRAM_OK ? calloc(1, sizeof(*tracing)) : NULL;
    if (!tracing)
        return status == PROGRAM_OK ? PROGRAM_FAILED : status;
    tracing->options = options;
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
    free(tracing);
    return status;
}

int program_trace(const struct program_command *command, const char *const *arguments)
{
    return program_options_act(command, arguments, trace);
}
