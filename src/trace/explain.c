/* SPDX-License-Identifier: MIT
 *
 * Sentences about the decisions that the session wrote down. Nothing is decided here.
 * trace/file.c has the sentences about the file that is sent.
 */
#include "base/buf.h"
#include "base/calendar.h"
#include "base/duration.h"
#include "rules/rules.h"
#include "server/sandbox.h"
#include "trace/http2.h"
#include "trace/rule.h"
#include "trace/trace.h"

#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

static char *format_text(const char *format, va_list arguments)
    __attribute__((format(printf, 1, 0)));

static char *format_text(const char *format, va_list arguments)
{
    char *text = malloc(TRACE_LINE_MAX);
    if (text)
        (void)vsnprintf(text, TRACE_LINE_MAX, format, arguments);
    return text;
}

void trace_add(struct trace *t, const char *about, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (t->count < TRACE_LINES_MAX) {
        char *text = format_text(format, arguments);
        if (text)
            t->lines[t->count++] = (struct trace_line){ about, text };
    }
    va_end(arguments);
}

void trace_set_cause(struct trace *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(t->cause, sizeof(t->cause), format, arguments);
    va_end(arguments);
}

void trace_forget(struct trace *t)
{
    while (t->count > 0)
        free(t->lines[--t->count].text);
}

struct span trace_field(const struct trace *t, enum http_field field)
{
    return http_request_field(&t->answer->trace.request, t->request.at, field);
}

/* ---- the request ---- */

static void explain_target(struct trace *t)
{
    const struct session_trace *trace = &t->answer->trace;
    const struct http_target *target = &trace->target;
    if (trace->fault == HTTP_FAULT_ENCODED_SLASH || target->form == HTTP_TARGET_ASTERISK)
        return;
    bool same = span_equal(target->path, span_first(span_text(t->target), strcspn(t->target, "?")));
    trace_add(t, "path", "`%.*s`%s", (int)target->path.len, target->path.at,
              same ? ", as received"
                   : ", after percent-decoding and without empty and dot segments");
    if (target->has_query)
        trace_add(t, "query", "`%.*s`; only listings and redirects use it", (int)target->query.len,
                  target->query.at);
    if (trace->scheme_named)
        trace_add(t, "scheme", "%s, as the proxy says", trace->secure ? "https" : "http");
}

static void explain_site(struct trace *t)
{
    const struct session_trace *trace = &t->answer->trace;
    struct span host = trace->target.host, rule = trace->rule;
    int len = (int)host.len;
    if (!t->site) {
        trace_add(t, "site", "no site has the host `%.*s`", len, host.at);
        return;
    }
    const char *in = t->site->root ? "in " : "",
               *root = t->site->root ? t->site->root : "no folder";
    if (span_equal(rule, SPAN("*")))
        trace_add(t, "site", "%s, %s%s, for every host that no other site names", t->site->name, in,
                  root);
    else
        trace_add(t, "site", "%s, %s%s: `%.*s` matches its `host = %s%.*s`", t->site->name, in,
                  root, len, host.at, rule.at[0] == '.' ? "*" : "", (int)rule.len, rule.at);
}

/* ---- rules for paths ---- */

static void explain_rule(struct trace *t, const struct rules_rule *rule)
{
    const struct session_trace *trace = &t->answer->trace;
    char bytes[TRACE_LINE_MAX / 2];
    struct buf text = buf_over(bytes, sizeof(bytes));
    const char *but = "";
    trace_rule_describe(t->site, rule, &text);
    if (rule->rate.interval_ns > 0 && rule != trace->match.meter)
        buf_add(&text, SPAN("; the rate of a later rule holds"));
    if (rule->action != RULES_SERVE && rule != trace->match.actor)
        but = ", but a later rule decides";
    else if (rule->if_absent)
        but = trace->substituted ? ", as there is no such file" : ", but only where no file is";
    trace_add(t, "rule", "%.*s%s", (int)text.len, text.at, but);
}

static void explain_rules(struct trace *t)
{
    const struct session_trace *trace = &t->answer->trace;
    const struct rules *rules = trace->ruled ? trace->site->rules : NULL;
    const struct rules_rule *actor = trace->match.actor;
    bool any = false;
    for (unsigned i = 0; rules && i < rules->count; i++) {
        const struct rules_rule *rule = &rules->rule[i];
        if (!rule->origin || !rules_match_has(&trace->match, i))
            continue;
        explain_rule(t, rule);
        any = true;
    }
    const bool listed = rules && rules_lists(rules, actor);
    if (listed)
        explain_rule(t, actor);
    if (rules && !any && !listed)
        trace_add(t, "rule", "no [path] of the site%s covers the path",
                  t->site->site_rules ? " and no line of its _headers and _redirects" : "");
}

/* The rule that answers without a file, or NULL. */
static const struct rules_rule *answering_rule(const struct session_trace *trace)
{
    const struct rules_rule *actor = trace->ruled ? trace->match.actor : NULL;
    if (!actor || actor->action == RULES_REWRITE || (actor->if_absent && !trace->substituted))
        return NULL;
    return actor;
}

static void explain_denial(struct trace *t, const struct rules_rule *gate)
{
    trace_set_cause(t, "%s, [path %.*s], does not allow %s", gate->origin,
                    (int)gate->pattern.text.len, gate->pattern.text.at, t->from);
}

/* `deed` is what the rule does. */
static void explain_actor(struct trace *t, const struct rules_rule *actor, const char *deed)
{
    char bytes[TRACE_LINE_MAX / 2];
    struct buf text = buf_over(bytes, sizeof(bytes));
    trace_rule_add_place(t->site, actor, SPAN(", "), &text);
    trace_set_cause(t, "%.*s, %s", (int)text.len, text.at, deed);
}

static void explain_answering(struct trace *t, const struct rules_rule *actor)
{
    explain_actor(t, actor,
                  actor->action == RULES_REDIRECT ? "redirects the path"
                                                  : "gives this status to the path");
}

/* ---- the disk ---- */

static const char *user_name(char *out, size_t size)
{
    const struct passwd *user = getpwuid(geteuid());
    if (user)
        (void)snprintf(out, size, "%s", user->pw_name);
    else
        (void)snprintf(out, size, "%u", (unsigned)geteuid());
    return out;
}

static void describe_file(char *out, size_t size, const struct site_step *step, const char *root)
{
    char when[CALENDAR_LEN];
    calendar_format(when, step->modified_ns / (int64_t)DURATION_SECOND);
    (void)snprintf(out, size, "%s/%s is a file of %llu bytes, changed %.*s%s%s%s", root, step->path,
                   (unsigned long long)step->size, (int)CALENDAR_LEN, when,
                   step->target[0] ? ", reached by a link to `" : "", step->target,
                   step->target[0] ? "`" : "");
}

/* Describes a name that does not exist, with the folder in which it was looked up. */
static void describe_nothing(char *out, size_t size, const struct site_step *step, const char *root,
                             struct span name)
{
    size_t above = (size_t)(name.at - step->path);
    int above_len = above > 0 ? (int)above - 1 : 0, name_len = (int)name.len;
    const char *slash = above > 0 ? "/" : "";
    if (step->error == -ENOTDIR && above > 0)
        (void)snprintf(out, size, "%s/%.*s is not a folder", root, above_len, step->path);
    else if (step->error == -ENOTDIR)
        (void)snprintf(out, size, "%s/%.*s is not a folder", root, name_len, name.at);
    else if (step->target[0])
        (void)snprintf(out, size,
                       "the link `%.*s` in %s%s%.*s points to `%s`, which does not exist", name_len,
                       name.at, root, slash, above_len, step->path, step->target);
    else
        (void)snprintf(out, size, "there is no `%.*s` in %s%s%.*s", name_len, name.at, root, slash,
                       above_len, step->path);
}

/* Describes the result of a lookup, with the part of the path that decided it. */
static void describe_step(char *out, size_t size, const struct site_step *step, const char *root)
{
    struct span part = span_first(span_text(step->path), step->end), name;
    if (span_ends(part, SPAN("/")))
        part = span_first(part, part.len - 1);
    name = part;
    for (size_t i = 0; i < part.len; i++)
        if (part.at[i] == '/' && i + 1 < part.len)
            name = span_skip(part, i + 1);
    int name_len = (int)name.len;
    const char *sentence = site_trace_cause_sentence(step->cause).at;
    char user[256];
    switch (step->cause) {
    case SITE_CAUSE_FILE:
        describe_file(out, size, step, root);
        break;
    case SITE_CAUSE_NOTHING:
        describe_nothing(out, size, step, root, name);
        break;
    case SITE_CAUSE_DENIED:
        (void)snprintf(out, size, "permission denied on %s/%.*s for user %s", root, (int)part.len,
                       part.at, user_name(user, sizeof(user)));
        break;
    case SITE_CAUSE_OUTSIDE:
    case SITE_CAUSE_LOOP:
        (void)snprintf(out, size, "the link `%.*s` (to `%s`) %s", name_len, name.at, step->target,
                       sentence);
        break;
    case SITE_CAUSE_HIDDEN:
    case SITE_CAUSE_RULES:
        (void)snprintf(out, size, "`%.*s` %s", name_len, name.at, sentence);
        break;
    case SITE_CAUSE_DIRECTORY:
    case SITE_CAUSE_NAME:
    case SITE_CAUSE_SPECIAL:
    case SITE_CAUSE_NO_INDEX:
    case SITE_CAUSE_LISTED:
    case SITE_CAUSE_EMPTY:
    case SITE_CAUSE_OLDER:
    case SITE_CAUSE_BUSY:
    case SITE_CAUSE_BROKEN:
        (void)snprintf(out, size, "%s/%s %s%s%s", root, step->path, sentence,
                       step->error < 0 ? ": " : "", step->error < 0 ? strerror(-step->error) : "");
        break;
    }
}

static void explain_steps(struct trace *t)
{
    static const char *const about[] = {
        [SITE_LOOKUP_PATH] = "lookup",       [SITE_LOOKUP_INDEX] = "index",
        [SITE_LOOKUP_SIBLING] = "stored",    [SITE_LOOKUP_DIRECTORY] = "folder",
        [SITE_LOOKUP_FALLBACK] = "fallback", [SITE_LOOKUP_ERROR_PAGE] = "error page",
        [SITE_LOOKUP_MARKDOWN] = "markdown",
    };
    const struct site_trace *steps = &t->answer->trace.steps;
    const char *root = t->site->root;
    const struct rules_rule *pages = t->answer->trace.pages;
    char text[TRACE_LINE_MAX];
    for (unsigned i = 0; i < steps->count; i++) {
        const struct site_step *step = &steps->step[i];
        if (step->purpose == SITE_LOOKUP_ERROR_PAGE) {
            root = pages ? pages->error_pages : t->site->error_pages;
            pages = NULL; /* the next lookup is in the folder of the site */
        } else if (step->purpose != SITE_LOOKUP_SIBLING) { /* that is in the root of its file */
            root = t->site->root;
        }
        describe_step(text, sizeof(text), step, root);
        trace_add(t, about[step->purpose], "%s", text);
    }
    if (steps->more > 0)
        trace_add(t, "lookup", "and %u more lookups", steps->more);
}

/* The last lookup of the path itself, which decided. */
static const struct site_step *deciding_step(const struct site_trace *steps)
{
    const struct site_step *last = NULL;
    for (unsigned i = 0; i < steps->count; i++) {
        enum site_purpose purpose = steps->step[i].purpose;
        if (purpose == SITE_LOOKUP_PATH || purpose == SITE_LOOKUP_INDEX ||
            purpose == SITE_LOOKUP_DIRECTORY)
            last = &steps->step[i];
    }
    return last;
}

/* The file of `spa` for the path, or NULL. */
static const char *fallback_of(const struct trace *t)
{
    const struct session_trace *trace = &t->answer->trace;
    if (!trace->ruled || !trace->match.fallback)
        return t->site->fallback;
    return trace->match.fallback[0] ? trace->match.fallback : NULL;
}

static void explain_absence(struct trace *t)
{
    const struct session_trace *trace = &t->answer->trace;
    const struct site_step *step = deciding_step(&trace->steps);
    if (trace->place_failed) {
        trace_set_cause(t, "the file in its place cannot be opened or read now");
        return;
    }
    if (trace->target_refused)
        explain_actor(t, trace->match.actor, "leads to a path that this client may not have");
    else if (step)
        describe_step(t->cause, sizeof(t->cause), step, t->site->root);
    else
        trace_set_cause(t, t->site->root ? "the path is longer than any file's path"
                                         : "the site has no root, and no section answers");
    const char *fallback = fallback_of(t);
    if (trace->result != SITE_ABSENT || !fallback)
        return;
    if (trace->navigates)
        trace_add(t, "fallback", "%s: the path does not exist, and a person probably opens it",
                  fallback);
    else
        trace_add(t, "fallback", "not %s: the name has a dot, and Accept does not prefer a page",
                  fallback);
}

static void explain_result(struct trace *t)
{
    const struct session_trace *trace = &t->answer->trace;
    explain_steps(t);
    switch (trace->result) {
    case SITE_REDIRECT:
        trace_set_cause(t, "%s%.*s is a folder, and the path has no slash at its end",
                        t->site->root, (int)trace->target.path.len, trace->target.path.at);
        break;
    case SITE_LISTING:
        if (trace->ruled && trace->match.listing == RULES_OFF)
            trace_set_cause(t, "the folder has no index file, and listing = off for this path");
        else if (trace->listing != SITE_FILE)
            trace_set_cause(t, "the folder cannot be listed now");
        else
            trace_add(t, "listing", "as %s, chosen by Accept",
                      trace->listing_json ? "JSON" : "a page");
        break;
    case SITE_FILE:
        break;
    case SITE_ABSENT:
    case SITE_FORBIDDEN:
    case SITE_NOT_IN_MEMORY: /* a trace may wait */
    case SITE_BUSY:
    case SITE_BROKEN:
        explain_absence(t);
        break;
    }
    if (trace->fallback || (trace->substituted && trace->entry))
        t->cause[0] = '\0'; /* the fallback answers, so there is no cause */
    if (trace->substituted && answering_rule(trace))
        explain_answering(t, answering_rule(trace));
    if (trace->entry)
        trace_explain_file(t);
}

/* ---- the whole explanation ---- */

static void explain_refusal(struct trace *t)
{
    const struct session_trace *trace = &t->answer->trace;
    if (trace->unknown_expectation) {
        struct span field = trace_field(t, HTTP_FIELD_EXPECT);
        trace_set_cause(t, "Expect is `%.*s`, and only 100-continue is supported", (int)field.len,
                        field.at);
    } else if (!t->site) {
        trace_set_cause(t, "no site has the host `%.*s`", (int)trace->target.host.len,
                        trace->target.host.at);
    } else if (trace->to_https) {
        trace_set_cause(t, "the site has `https-redirect = on`, and the client has used http");
    } else if (trace->denied) {
        explain_denial(t, trace->match.gate);
    } else if (answering_rule(trace)) {
        explain_answering(t, answering_rule(trace));
    } else if (trace->request.method == HTTP_METHOD_KNOWN) {
        trace_set_cause(t, "%s is not allowed: a site allows GET, HEAD and OPTIONS", t->method);
    } else if (trace->request.method == HTTP_METHOD_UNKNOWN) {
        trace_set_cause(t, "%s is an unknown method", t->method);
    }
}

/* Whether the request had access to a path that needs a password, and why. */
static void explain_access(struct trace *t)
{
    const struct rules_rule *keeper = t->answer->trace.keeper;
    const char *file = t->site ? t->site->auth : NULL;
    char what[TRACE_LINE_MAX / 4] = "the site";
    if (keeper && keeper->origin) {
        file = trace_rule_users(t->site, keeper);
        (void)snprintf(what, sizeof(what), "%s, [path %.*s]", keeper->origin,
                       (int)keeper->pattern.text.len, keeper->pattern.text.at);
    }
    switch (t->answer->trace.access) {
    case SESSION_ACCESS_OPEN:
    case SESSION_ACCESS_PENDING:
        return;
    case SESSION_ACCESS_REMEMBERED:
    case SESSION_ACCESS_RIGHT:
        trace_add(t, "password", "right, by `auth = %s` of %s", file, what);
        return;
    case SESSION_ACCESS_MISSING:
        trace_set_cause(t,
                        "%s needs a password (`auth = %s`), and the request has none that can be "
                        "read",
                        what, file);
        return;
    case SESSION_ACCESS_WRONG:
        trace_set_cause(t, "%s needs a password (`auth = %s`), and this one is wrong", what, file);
        return;
    case SESSION_ACCESS_LIMITED:
    case SESSION_ACCESS_BUSY:
        trace_set_cause(t, "the password could not be compared now");
        return;
    }
}

static void explain_fault(struct trace *t, enum http_fault fault)
{
    struct span sentence = http_fault_sentence(fault);
    uint32_t limit = http_fault_limit(fault);
    if (limit > 0)
        trace_set_cause(t, "%.*s, %u", (int)sentence.len, sentence.at, (unsigned)limit);
    else
        trace_set_cause(t, "%.*s", (int)sentence.len, sentence.at);
}

/* The sandbox may refuse a file that `weir trace` can read. */
static void explain_sandbox(struct trace *t)
{
    struct server_sandbox machine;
    server_sandbox_describe_machine(&machine);
    bool off = strcmp(t->config->sandbox, "off") == 0;
    trace_add(t, "sandbox", "%s", off ? "off" : machine.in_force);
}

static void explain_page(struct trace *t)
{
    const struct rules_rule *rule = t->answer->trace.pages;
    char bytes[TRACE_LINE_MAX];
    struct buf place = buf_over(bytes, sizeof(bytes));
    if (!t->answer->trace.page_of_path) {
        trace_add(t, "page", "the site's own, from %s", t->site->error_pages);
        return;
    }
    trace_rule_add_place(t->site, rule, SPAN(": "), &place);
    trace_add(t, "page", "that of %.*s, from %s", (int)place.len, place.at, rule->error_pages);
}

void trace_explain(struct trace *t)
{
    const struct session_trace *trace = &t->answer->trace;
    if (trace->resolved) {
        explain_target(t);
        explain_site(t);
        explain_access(t);
        explain_rules(t);
    }
    if (trace->looked)
        explain_result(t);
    else if (trace->fault == HTTP_FAULT_NONE && !t->cause[0])
        explain_refusal(t);
    if (trace->fault != HTTP_FAULT_NONE && !t->cause[0])
        explain_fault(t, trace->fault);
    if (trace->own_page)
        explain_page(t);
    if (t->http2 && t->answer->head_len > 0)
        trace_add(t, "head", "%zu bytes as a header block of HTTP/2",
                  trace_http2_block_bytes(t->http2));
    explain_sandbox(t);
}
