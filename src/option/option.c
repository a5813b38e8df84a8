/* SPDX-License-Identifier: MIT */
#include "option/option.h"

#include "base/duration.h"
#include "base/nearest.h"
#include "base/num.h"

#include <stdarg.h>
#include <stdlib.h>

/* The bound of a time without one. Added to a clock reading it cannot overflow. */
#define LONGEST_NS (1000 * 3600 * DURATION_SECOND)

const struct option option_answers[] = {
    { .name = "help", .letter = 'h', .sentence = "print help and stop" },
    { .name = "version", .letter = 'V', .sentence = "print the version and stop" },
    { .name = NULL },
};

/* The state of one reading. */
struct reader {
    const struct option_command *command;
    const char *const *next; /* word */
    char *into;
    struct option_refusal *refusal;
    enum option_result result; /* of a line without a mistake */
};

/* An option as it stands on the command line. */
struct written {
    struct span shown;    /* `--name` or `-l` */
    struct span name;     /* without dashes; empty for a letter */
    char letter;          /* or 0 */
    const char *attached; /* the value in the same word, or NULL */
};

bool option_refuse(struct option_refusal *refusal, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(refusal->text, sizeof(refusal->text), format, arguments);
    va_end(arguments);
    return false;
}

/* ---- values ---- */

static bool add_to_list(struct option_list *list, const char *value)
{
    const char **more = reallocarray(list->at, list->count + 1, sizeof(*more));
    if (!more)
        return false;
    list->at = more;
    list->at[list->count++] = value;
    return true;
}

static bool store_number(void *member, const struct option *option, const char *value,
                         struct option_refusal *refusal)
{
    uint64_t number;
    if (!num_parse_u64(span_text(value), &number) || number < option->least ||
        number > option->most)
        return option_refuse(refusal, "--%s: `%s` is not a number from %llu to %llu", option->name,
                             value, (unsigned long long)option->least,
                             (unsigned long long)option->most);
    uint32_t narrow = (uint32_t)number;
    CHECK(option->size == sizeof(number) || number == narrow);
    if (option->size == sizeof(number))
        memcpy(member, &number, sizeof(number));
    else
        memcpy(member, &narrow, sizeof(narrow));
    return true;
}

static bool store_time(uint64_t *member, const struct option *option, const char *value,
                       struct option_refusal *refusal)
{
    uint64_t ns = 0, number;
    uint64_t most = option->most > 0 ? option->most : LONGEST_NS;
    bool is_time = duration_parse(span_text(value), &ns);
    if (is_time && ns >= option->least && ns <= most) {
        *member = ns;
        return true;
    }
    if (num_parse_u64(span_text(value), &number) && number > 0)
        return option_refuse(refusal, "--%s: `%s` has no unit; write %ss for seconds, or %sms",
                             option->name, value, value, value);
    if (is_time && option->most == 0)
        return option_refuse(refusal, "--%s: `%s` is too %s", option->name, value,
                             ns > most ? "long; the longest time is 1000h"
                                       : "short; write 500ms, 10s or 2m");
    if (option->most == 0)
        return option_refuse(refusal, "--%s: `%s` is not a time; write 500ms, 10s or 2m",
                             option->name, value);
    return option_refuse(refusal, "--%s: `%s` is not a time from %s to %s", option->name, value,
                         duration_format(option->least).text, duration_format(option->most).text);
}

static bool store_text(const char **member, const struct option *option, struct span shown,
                       const char *value, struct option_refusal *refusal)
{
    if (*member && option->kind == OPTION_ONCE)
        return option_refuse(refusal, "%.*s is given twice; give it once", (int)shown.len,
                             shown.at);
    *member = value;
    return true;
}

static bool store_value(struct reader *reader, const struct option_group *group,
                        const struct option *option, struct span shown, const char *value)
{
    char *into = reader->into + group->offset;
    void *member = into + option->offset;
    switch (option->kind) {
    case OPTION_PRESENT:
        CHECK(option->size == sizeof(bool));
        *(bool *)member = true;
        return true;
    case OPTION_TEXT:
    case OPTION_ONCE:
        CHECK(option->size == sizeof(const char *));
        return store_text(member, option, shown, value, reader->refusal);
    case OPTION_LIST:
        CHECK(option->size == sizeof(struct option_list));
        return add_to_list(member, value) || option_refuse(reader->refusal, "out of memory");
    case OPTION_NUMBER:
        return store_number(member, option, value, reader->refusal);
    case OPTION_TIME:
        CHECK(option->size == sizeof(uint64_t));
        return store_time(member, option, value, reader->refusal);
    case OPTION_READ:
    case OPTION_SWITCH:
        break;
    }
    return option->read(into, option, value, reader->refusal);
}

/* ---- options ---- */

static bool is_written(const struct option *option, const struct written *written)
{
    return written->letter ? option->letter == written->letter
                           : span_equal(span_text(option->name), written->name);
}

static const struct option *find_option(const struct option *options, const struct written *written)
{
    for (; options->name; options++)
        if (is_written(options, written))
            return options;
    return NULL;
}

static const struct option *find_name(const struct option_command *command, struct span name)
{
    const struct written written = { .name = name };
    const struct option *found = NULL;
    for (const struct option_group *group = command->groups; group->options && !found; group++)
        found = find_option(group->options, &written);
    return found;
}

/* Refuses `-name` and `--no-name`, which are options of other programs. Returns whether it has. */
static bool refuse_habit(const struct reader *reader, const struct written *written)
{
    const struct span no = SPAN("no-");
    const struct option *option = NULL;
    if (written->letter && written->attached)
        option = find_name(reader->command,
                           span_of(written->attached - 1, strcspn(written->attached - 1, "=")));
    if (option) {
        (void)option_refuse(reader->refusal, "an option has two dashes; write --%s", option->name);
        return true;
    }
    if (span_starts(written->name, no))
        option = find_name(reader->command, span_skip(written->name, no.len));
    if (!option || option->kind != OPTION_SWITCH)
        return false;
    (void)option_refuse(reader->refusal, "there is no %.*s; write --%s off",
                        (int)written->shown.len, written->shown.at, option->name);
    return true;
}

static bool refuse_unknown(const struct reader *reader, const struct written *written)
{
    const struct option_command *command = reader->command;
    int len = (int)written->shown.len;
    const char *shown = written->shown.at;
    if (refuse_habit(reader, written))
        return false;
    for (const struct option_elsewhere *e = command->elsewhere; e && e->word; e++)
        if (span_equal(span_text(e->word), written->shown))
            return option_refuse(reader->refusal, "there is no %s; %s", e->word, e->cure);
    if (command->others && find_option(command->others, written))
        return option_refuse(reader->refusal, "`weir %s` takes no %.*s", command->name, len, shown);
    if (command->explain && command->explain(written->name, reader->refusal))
        return false;
    struct nearest nearest = nearest_to(written->name);
    for (const struct option_group *group = command->groups; group->options; group++)
        for (const struct option *option = group->options; option->name; option++)
            nearest_offer(&nearest, option->name);
    if (nearest.best)
        return option_refuse(reader->refusal, "unknown option %.*s; did you mean --%s?", len, shown,
                             nearest.best);
    return option_refuse(reader->refusal, "unknown option %.*s; `weir help %s` lists them", len,
                         shown, command->name);
}

static bool needs_no_value(const struct option *option, const char *next)
{
    return !option->placeholder ||
           (option->kind == OPTION_SWITCH &&
            (!next || (strcmp(next, "on") != 0 && strcmp(next, "off") != 0)));
}

static bool take_option(struct reader *reader, const struct written *written)
{
    const struct option *option = NULL;
    const struct option_group *group = reader->command->groups;
    for (; group->options; group++)
        if ((option = find_option(group->options, written)))
            break;
    if (!option)
        return refuse_unknown(reader, written);
    int len = (int)written->shown.len;
    const char *shown = written->shown.at, *value = written->attached;
    if (group->options == option_answers && !value) {
        /* find_question ends at the first `--`, which was the value of an option */
        reader->result = option == option_answers ? OPTION_ASKS_HELP : OPTION_ASKS_VERSION;
        return true;
    }
    if (value && !option->placeholder)
        return option_refuse(reader->refusal, "%.*s takes no value", len, shown);
    if (!value && needs_no_value(option, *reader->next))
        value = option->kind == OPTION_SWITCH ? "on" : "";
    else if (!value && !*reader->next)
        return option_refuse(reader->refusal, "%.*s needs a value: %.*s %s", len, shown, len, shown,
                             option->placeholder);
    else if (!value)
        value = *reader->next++;
    return store_value(reader, group, option, written->shown, value);
}

/* ---- words ---- */

static bool take_argument(struct reader *reader, const char *word)
{
    const struct option_command *command = reader->command;
    struct option_list *arguments = (void *)(reader->into + command->arguments_offset);
    if (command->take_argument)
        return command->take_argument(reader->into, word, reader->refusal);
    if (command->arguments_most == 0)
        return option_refuse(reader->refusal, "`weir %s` takes no argument, and `%s` is one",
                             command->name, word);
    if (word[0] == '\0')
        return option_refuse(reader->refusal, "an argument is empty");
    if (arguments->count == command->arguments_most && command->arguments_most == 1)
        return option_refuse(reader->refusal,
                             "`%s` and `%s` are two arguments; `weir %s` takes one",
                             arguments->at[0], word, command->name);
    if (arguments->count == command->arguments_most)
        return option_refuse(reader->refusal,
                             "`%s` is one argument too many; `weir help %s` explains", word,
                             command->name);
    return add_to_list(arguments, word) || option_refuse(reader->refusal, "out of memory");
}

static bool take_word(struct reader *reader, const char *word)
{
    struct written written = { .shown = span_first(span_text(word), 2), .letter = word[1] };
    if (word[1] != '-') {
        written.attached = word[2] ? word + 2 : NULL;
        return take_option(reader, &written);
    }
    const char *equals = strchr(word, '=');
    written.shown = span_of(word, equals ? (size_t)(equals - word) : strlen(word));
    written.name = span_skip(written.shown, 2);
    written.letter = '\0';
    written.attached = equals ? equals + 1 : NULL;
    return take_option(reader, &written);
}

/* Help and version win over everything else on the line, right or wrong. */
static enum option_result find_question(const char *const *words)
{
    for (; *words && strcmp(*words, "--") != 0; words++) {
        if (strcmp(*words, "--help") == 0 || strcmp(*words, "-h") == 0)
            return OPTION_ASKS_HELP;
        if (strcmp(*words, "--version") == 0 || strcmp(*words, "-V") == 0)
            return OPTION_ASKS_VERSION;
    }
    return OPTION_GOOD;
}

enum option_result option_read(const struct option_command *command, const char *const *words,
                               void *into, struct option_refusal *refusal)
{
    struct reader reader = { command, words, into, refusal, OPTION_GOOD };
    enum option_result question = find_question(words);
    if (question != OPTION_GOOD)
        return question;
    bool good = true, only_arguments = false;
    while (good && *reader.next) {
        const char *word = *reader.next++;
        if (only_arguments || word[0] != '-' || word[1] == '\0')
            good = take_argument(&reader, word);
        else if (strcmp(word, "--") == 0)
            only_arguments = true;
        else
            good = take_word(&reader, word);
    }
    return good ? reader.result : OPTION_WRONG;
}

static void free_list(struct option_list *list)
{
    free(list->at);
    *list = (struct option_list){ 0 };
}

void option_done(const struct option_command *command, void *into)
{
    char *base = into;
    for (const struct option_group *group = command->groups; group->options; group++) {
        for (const struct option *option = group->options; option->name; option++)
            if (option->kind == OPTION_LIST)
                free_list((void *)(base + group->offset + option->offset));
        if (group->done)
            group->done(base + group->offset);
    }
    if (command->arguments_most > 0)
        free_list((void *)(base + command->arguments_offset));
}
