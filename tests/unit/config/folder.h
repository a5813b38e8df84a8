/* SPDX-License-Identifier: MIT
 *
 * Whole configurations, in a folder of their own that is the current one. It has the site site/,
 * and two lists of users.
 */
#pragma once

#include "config/read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#define SITE "[site a]\nroot = site\n"

static char top[] = "/tmp/weir-config-XXXXXX";

static inline void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static inline int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(top) || chdir(top) < 0)
        return -1;
    mkdir("site", 0755);
    mkdir("site/folder", 0755);
    write_file("site/index.html", "hello");
    write_file("one.users", "");
    write_file("two.users", "");
    return chmod("one.users", 0600) < 0 ? -1 : chmod("two.users", 0600);
}

static inline int remove_folder(void **state)
{
    (void)state;
    unlink("weir.conf");
    unlink("site/index.html");
    unlink("one.users");
    unlink("two.users");
    rmdir("site/folder");
    rmdir("site");
    return chdir("/") < 0 ? -1 : rmdir(top);
}

static inline struct config_store *read_text(const char *text)
{
    write_file("weir.conf", text);
    struct config_request request = { .file = "weir.conf" };
    return config_read(&request);
}

/* What `print` prints. Free it. Inlined, gcc 12 takes the memory of the stream for one on the stack
 * (-Wdangling-pointer). */
static __attribute__((noinline, unused)) char *printed(const struct config_store *store,
                                                       void (*print)(const struct config_store *,
                                                                     FILE *))
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    print(store, out);
    fclose(out);
    return text;
}

static inline void print_problems(const struct config_store *store, FILE *out)
{
    config_read_print_problems(store, CONFIG_PROBLEMS_SHOWN, out);
}

static inline char *problems_of(const struct config_store *store)
{
    return printed(store, print_problems);
}

static inline char *explanation_of(const struct config_store *store)
{
    return printed(store, config_read_explain);
}

/* The text gives exactly these lines. */
static inline void assert_problems(const char *text, const char *expected)
{
    struct config_store *store = read_text(text);
    char *problems = problems_of(store);
    if (strcmp(problems, expected) != 0)
        fail_msg("%s---\ngives\n%s---\nexpected\n%s---", text, problems, expected);
    free(problems);
    config_read_free(store);
}
