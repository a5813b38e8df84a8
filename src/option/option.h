/* SPDX-License-Identifier: MIT
 *
 * The options of a command, as tables. A row says what an option is called, what value it
 * takes, and into which member of a struct the value goes. The command line is read by the
 * rows, and --help is printed from the same rows (option/help.h).
 *
 * Accepted are `--name value`, `--name=value`, `-l value` and `-lvalue`, in any order with
 * the arguments. Every word after `--` is an argument.
 *
 * It prints nothing and ends no process: the caller does both.
 */
#pragma once

#include "base/check.h"
#include "base/span.h"

#include <stdint.h>
#include <stdio.h>

/* Why a command line is refused, in one line. */
struct option_refusal {
    char text[512];
};

/* Always false, for `return option_refuse(...)`. */
bool option_refuse(struct option_refusal *refusal, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The value of an option, and the type of the member that it goes into. */
enum option_kind {
    OPTION_PRESENT, /* no value; bool: the option is given */
    OPTION_TEXT,    /* const char *: the value; the last one counts */
    OPTION_ONCE,    /* const char *: the value; a second one is refused */
    OPTION_LIST,    /* struct option_list: every value */
    OPTION_NUMBER,  /* an integer of 4 or 8 bytes: `least` to `most` */
    OPTION_TIME,    /* uint64_t, nanoseconds: `least` to `most`; `most` 0: 1000 hours */
    OPTION_READ,    /* `read` gets the value, or "" without a placeholder */
    OPTION_SWITCH   /* the same; the value is `on` or `off`, and `on` when it is missing */
};

/* Values in the order of the command line. The pointers are borrowed from it. */
struct option_list {
    const char **at;
    size_t count;
};

struct option {
    const char *name;
    char letter;             /* 0: none */
    const char *placeholder; /* NULL: takes no value */
    const char *sentence;    /* for --help */
    enum option_kind kind;
    size_t offset, size; /* of the member: OPTION_INTO */
    uint64_t least, most;
    /* `into` is the struct that the group of the option describes. */
    bool (*read)(void *into, const struct option *option, const char *value,
                 struct option_refusal *refusal);
};

/* The member of the struct of the group that a value goes into. */
#define OPTION_INTO(type, member) \
    .offset = offsetof(struct type, member), .size = sizeof(((struct type *)0)->member)

/* Options that belong together. A command's struct embeds the struct that they describe. */
struct option_group {
    const char *title;            /* for --help; NULL: the group continues the one before */
    const struct option *options; /* NULL name at the end */
    size_t offset;                /* of the embedded struct in the command's */
    void (*print)(FILE *out);     /* prints the group in --help; NULL: the rows are printed */
    void (*done)(void *into);     /* frees what the group's `read` allocated; NULL: nothing */
};

/* A word that other programs know, and what to use here. */
struct option_elsewhere {
    const char *word; /* with its dashes */
    const char *cure;
};

/* All that one command takes. */
struct option_command {
    const char *name;                         /* as written behind `weir` */
    const struct option_group *groups;        /* NULL options at the end */
    const struct option_elsewhere *elsewhere; /* NULL word at the end; NULL: none */
    const struct option *others;              /* options of other commands only; NULL: none */
    /* Whether there is a hint for an unknown --NAME; it is the refusal. NULL: there is none. */
    bool (*explain)(struct span name, struct option_refusal *refusal);
    size_t arguments_offset; /* of a struct option_list in the command's struct */
    size_t arguments_most;   /* 0: it takes none */
    /* Gets each argument in place of the list; NULL: the list does. */
    bool (*take_argument)(void *into, const char *argument, struct option_refusal *refusal);
};

enum option_result {
    OPTION_GOOD,
    OPTION_WRONG,     /* *refusal says why */
    OPTION_ASKS_HELP, /* --help or -h stands before any `--` */
    OPTION_ASKS_VERSION
};

/* --help and --version, for every command to list. */
extern const struct option option_answers[];

/* Reads `words` (NULL at the end) into `into`, the command's struct. The struct keeps the members
 * that are not given, so the caller sets defaults first. It borrows the words. End with
 * option_done in every case. */
MUST_USE enum option_result option_read(const struct option_command *command,
                                        const char *const *words, void *into,
                                        struct option_refusal *refusal);

/* Frees the lists in `into`, and what the groups allocated. */
void option_done(const struct option_command *command, void *into);
