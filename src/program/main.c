/* SPDX-License-Identifier: MIT
 *
 * The beginning and the end of every command: finds it by its name, and sees to
 * it that what was printed has arrived. `weir DIR` is `weir serve DIR`.
 */
#include "base/nearest.h"
#include "base/span.h"
#include "program/command.h"
#include "program/options.h"

#include <errno.h>
#include <sys/stat.h>

const struct program_command program_commands[] = {
    { "serve", "[DIR] [-c FILE] [OPTION]...", "serve a folder, or what a file configures",
      "With DIR alone it is a server for yourself: this machine only, port 8080,\n"
      "folders listed, requests shown on the terminal. With -c it does what the file\n"
      "says; with both, DIR answers for every host that no site of the file has.\n"
      "\n"
      "Options win over variables (WEIR_CACHE_SIZE for --cache-size; all but those of\n"
      "the site), variables over the file, the file over the defaults.\n"
      "\n"
      "Examples:\n"
      "  weir .                               this folder, on http://127.0.0.1:8080/\n"
      "  weir public --listen '*:8080'        for other machines too\n"
      "  weir dist --spa index.html           a single-page application\n"
      "  weir serve -c /etc/weir/weir.conf    sites, from a file (weir.conf(5))\n",
      PROGRAM_ARGUMENT | PROGRAM_CONFIG_FILE | PROGRAM_SETTINGS | PROGRAM_SERVE_OPTIONS,
      program_serve },
    { "check", "[FILE|DIR] [-c FILE] [--explain] [OPTION]...", "test a configuration",
      "Tells everything that is wrong with FILE (without one: ./weir.conf), with the\n"
      "line and a cure. It needs no privileges, opens no socket and writes no file.\n"
      "Settings may follow as for `weir serve`, and are tested too.\n"
      "\n"
      "It exits with 0 when the configuration can be used, with 1 when it cannot, and\n"
      "with 2 when the command line is wrong. Warnings do not count.\n"
      "\n"
      "Examples:\n"
      "  weir check weir.conf                 is it right?\n"
      "  weir check weir.conf --explain       which values apply, and where from?\n"
      "  weir check --explain .               what would `weir .` do?\n",
      PROGRAM_ARGUMENT | PROGRAM_CONFIG_FILE | PROGRAM_SETTINGS | PROGRAM_EXPLAIN, program_check },
    { "reload", "[--control PATH] [PID]", "have a running server read its configuration anew",
      "The server tests the configuration first. When it is good, new workers serve\n"
      "with it, and the old ones finish what they have begun; no connection is\n"
      "refused meanwhile. When it is not, all that is wrong is told here, as by\n"
      "`weir check`, and the server goes on as it was.\n"
      "\n"
      "Without an argument it is the one server that this user runs. It exits with 0\n"
      "once the new configuration is in force, with 1 when it is not, and with 2 when\n"
      "the command line is wrong or does not say which of several servers is meant.\n"
      "\n"
      "Examples:\n"
      "  weir reload                          the server that I run\n"
      "  weir reload 4711                     the one with this process id\n"
      "  weir reload --control /run/w.sock    the one with `control = /run/w.sock`\n",
      PROGRAM_ARGUMENT | PROGRAM_CONTROL, program_reload },
    { "stop", "[--now] [--control PATH] [PID]", "stop a running server",
      "After `drain-delay` no new connections are taken, and answers under way get\n"
      "`drain-timeout` to finish. It returns when the server is gone.\n"
      "\n"
      "Without an argument it is the one server that this user runs. It exits with 0\n"
      "when the server has stopped, with 1 when it has not, and with 2 when the\n"
      "command line is wrong or does not say which of several servers is meant.\n"
      "\n"
      "Examples:\n"
      "  weir stop                            the server that I run\n"
      "  weir stop --now                      without waiting for anybody\n"
      "  weir stop 4711                       the one with this process id\n",
      PROGRAM_ARGUMENT | PROGRAM_CONTROL | PROGRAM_NOW, program_stop },
    { "stats", "[--json|--prometheus|--openmetrics] [--explain] [PID]",
      "print what a running server has counted",
      "Requests, connections, cache and durations since the server started, in all\n"
      "its workers, those that have ended too. The server is not asked: its memory\n"
      "is read, also when it hangs or was killed.\n"
      "\n"
      "Without an argument it is the one server that this user runs. It exits with 0\n"
      "when there are numbers, with 1 when there are none or they cannot be read, and\n"
      "with 2 when the command line does not say which of several servers is meant.\n"
      "\n"
      "Examples:\n"
      "  weir stats                           the server that I run\n"
      "  weir stats --explain                 and what each number means\n"
      "  weir stats --json 4711               the one with this process id, for programs\n",
      PROGRAM_ARGUMENT | PROGRAM_STATS, program_stats },
    { "top", "[--interval TIME] [PID]", "watch a running server in the terminal",
      "Rates, percentiles, connections, cache, queue and workers, and over time, as\n"
      "they are since the last reading. Each counter is explained where it is chosen.\n"
      "`?` lists the keys, `q` quits. The server is not asked, as by `weir stats`.\n"
      "\n"
      "Without an argument it is the one server that this user runs; when it ends, the\n"
      "next one is shown. It exits with 2 when standard output is no terminal, or the\n"
      "command line does not say which of several servers is meant.\n"
      "\n"
      "Colours are left out with NO_COLOR set, and all but ASCII without a UTF-8 locale.\n"
      "\n"
      "Examples:\n"
      "  weir top                             the server that I run\n"
      "  weir top --interval 100ms 4711       the one with this process id, often\n",
      PROGRAM_ARGUMENT | PROGRAM_TOP, program_top },
    { "password", "", "make the hash of a password for the statistics page",
      "Asks for a password twice, or reads one line where it is no terminal, and prints\n"
      "what goes into a configuration, as `stats-password = HASH`. The page then asks for\n"
      "that password, with any user name.\n"
      "\n"
      "Examples:\n"
      "  weir password\n"
      "  pwgen 20 1 | tee secret | weir password\n",
      0, program_password },
    { "trace", "PATH [-H 'Name: value']... [DIR|-c FILE|PID] [--live] [OPTION]...",
      "say how a request would be answered, and why",
      "Answers one request as `weir serve` would, with the same code, and tells how it\n"
      "came to that: site, path, file, encoding, conditions, cache; for anything but\n"
      "200 the exact cause; and the head of the answer. DIR, FILE and the options are\n"
      "those of `weir serve`; without them it is ./weir.conf. Nothing is written, and\n"
      "no server is needed.\n"
      "\n"
      "With --live the running server is asked as well, over its own address, and what\n"
      "it says is compared. Without DIR and FILE what is expected comes from how that\n"
      "server was started. PID names one of several.\n"
      "\n"
      "It exits with 0 when there was an answer, whatever its status, with 1 when there\n"
      "was none (no server, a configuration with errors), and with 2 when the command\n"
      "line is wrong.\n"
      "\n"
      "Examples:\n"
      "  weir trace /a.css public             in the folder `public`\n"
      "  weir trace /a.css -c weir.conf --host example.org\n"
      "  weir trace /a.css . -H 'Accept-Encoding: br, gzip'\n"
      "  weir trace --live /a.css             does the server do what it should?\n",
      PROGRAM_ARGUMENT | PROGRAM_CONFIG_FILE | PROGRAM_SETTINGS | PROGRAM_CONTROL | PROGRAM_TRACE,
      program_trace },
    { "load", "URL... [OPTION]...", "put a server under load, and measure it",
      "Emulated users, each with a connection of its own: each asks, waits for the\n"
      "whole answer, thinks, and asks again. What they wait is told as it was, never\n"
      "corrected afterwards. With --rate requests come whether or not those before were\n"
      "answered, and what is told counts from when each should have begun.\n"
      "\n"
      "URLs are http://HOST[:PORT]/PATH or unix:/SOCKET:/PATH; of several each request\n"
      "draws one. Ctrl-C ends it with what there is. `weir load merge FILE...` makes\n"
      "one result of those of several machines.\n"
      "\n"
      "It exits with 0; with 1 when it failed, with 2 when the command line is wrong,\n"
      "with 3 when an objective of --slo was missed, and with 4 when it was the\n"
      "generator that was measured and not the server.\n"
      "\n"
      "Examples:\n"
      "  weir load http://127.0.0.1:8080/               10 users, 10 seconds\n"
      "  weir load URL --users 100 --think exp:1s       a hundred people who read\n"
      "  weir load URL --steps 1,2,5,10..100:10         where does it saturate?\n"
      "  weir load URL --rate 500 --slo 'p99<50ms'      does it stand 500 a second?\n"
      "  weir load URL -u 64 -n 100000 --json           so many, and for programs\n",
      PROGRAM_LOAD, program_load },
    { "models", "", "list the concurrency models",
      "One line each: its name, what it is, and when to use it. Choose one with\n"
      "`weir serve --model NAME`.\n",
      0, program_models },
    { "help", "[COMMAND]", "explain a command", "", PROGRAM_ARGUMENT, program_help },
    { NULL, NULL, NULL, NULL, 0, NULL },
};

const struct program_command *program_command_find(const char *name)
{
    for (const struct program_command *command = program_commands; command->name; command++)
        if (strcmp(command->name, name) == 0)
            return command;
    return NULL;
}

/* A word that is no command is a folder, if there is anything of that name. */
static bool is_folder(const char *word)
{
    struct stat info;
    return strchr(word, '/') || strcmp(word, ".") == 0 || stat(word, &info) == 0;
}

static int refuse_word(const char *word)
{
    struct nearest nearest = nearest_to(span_text(word));
    for (const struct program_command *command = program_commands; command->name; command++)
        nearest_offer(&nearest, command->name);
    if (nearest.best)
        fprintf(stderr, "weir: `%s` is neither a command nor a folder; did you mean `%s`?\n", word,
                nearest.best);
    else
        fprintf(stderr, "weir: `%s` is neither a command nor a folder; see `weir help`\n", word);
    return PROGRAM_USAGE;
}

static int run(const char *const *arguments)
{
    const char *word = arguments[0];
    if (!word) {
        program_help_print(NULL, stderr);
        return PROGRAM_USAGE;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        program_help_print(NULL, stdout);
        return PROGRAM_OK;
    }
    const struct program_command *command = program_command_find(word);
    if (command)
        return command->run(command, arguments + 1);
    if (word[0] != '-' && !is_folder(word))
        return refuse_word(word);
    command = program_command_find("serve");
    return command->run(command, arguments);
}

int main(int argc, char **argv)
{
    int status = run((const char *const *)argv + (argc > 0));
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "weir: cannot write to standard output: %s\n", strerror(errno));
        return status == PROGRAM_OK ? PROGRAM_FAILED : status;
    }
    return status;
}
