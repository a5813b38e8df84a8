/* SPDX-License-Identifier: MIT */
#include "top/terminal.h"

#include "os/file.h"
#include "top/state.h"

#include <errno.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#define NCURSES_WIDECHAR 1
#include <ncurses.h> /* not term.h: it makes macros of words like `columns` */

enum { ESCAPE_WAIT_MS = 25, LEAVE_BYTES = 256 };

static struct {
    bool open;
    SCREEN *screen;
    FILE *out;  /* where ncurses writes */
    int memory; /* collects the output while it draws; -1: not used */
    struct top_canvas shown;
} terminal;

/* ---- restoring after a fault of this process ---- */

/* Prepared before, because a signal handler can call almost nothing. */
static struct {
    volatile sig_atomic_t armed;
    struct termios modes;
    char text[LEAVE_BYTES];
    size_t len;
} leave;

static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS };
enum { FAULTS = sizeof(faults) / sizeof(faults[0]) };

static void on_fault(int number)
{
    if (leave.armed) {
        ssize_t ignored = write(STDOUT_FILENO, leave.text, leave.len);
        (void)ignored;
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &leave.modes);
    }
    (void)raise(number); /* the handler is removed (SA_RESETHAND), so the process dies */
}

/* Adds a capability without padding marks ("$<5>"), which no terminal needs today. */
static void add_capability(const char *name)
{
    const char *text = tigetstr(name);
    if (!text || (intptr_t)text == -1)
        return;
    while (*text && leave.len < sizeof(leave.text)) {
        const char *end = text[0] == '$' && text[1] == '<' ? strchr(text, '>') : NULL;
        if (end)
            text = end + 1;
        else
            leave.text[leave.len++] = *text++;
    }
}

static void prepare_for_faults(void)
{
    static const char *const capabilities[] = { "sgr0", "cnorm", "rmkx", "rmcup" };
    static char stack[65536];
    stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) };
    leave.len = 0;
    for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++)
        add_capability(capabilities[i]);
    (void)sigaltstack(&other, NULL);
    struct sigaction action = { .sa_handler = on_fault };
    action.sa_flags = SA_ONSTACK | (int)SA_RESETHAND | SA_NODEFER;
    for (size_t i = 0; i < FAULTS; i++)
        (void)sigaction(faults[i], &action, NULL);
    leave.armed = true;
}

/* ---- drawing in one write ---- */

static void write_all(const char *text, size_t len)
{
    while (len > 0) {
        ssize_t sent = write(STDOUT_FILENO, text, len);
        if (sent < 0 && errno == EAGAIN) { /* an earlier program has left it non-blocking */
            struct pollfd terminal_end = { .fd = STDOUT_FILENO, .events = POLLOUT };
            (void)poll(&terminal_end, 1, -1);
        } else if (sent < 0 && errno != EINTR) {
            return; /* the terminal is gone; poll will report it */
        }
        text += sent > 0 ? sent : 0;
        len -= sent > 0 ? (size_t)sent : 0;
    }
}

/* ncurses writes after each movement of the cursor, about thirty times for one picture. Over ssh
 * each write may be a packet. The output is therefore collected and written in one piece. */
static void draw_at_once(void)
{
    char text[16384];
    int out = fileno(terminal.out);
    ssize_t got;
    bool collects = terminal.memory >= 0 && lseek(terminal.memory, 0, SEEK_SET) == 0 &&
                    dup2(terminal.memory, out) == out;
    refresh();
    if (!collects)
        return;
    off_t len = lseek(terminal.memory, 0, SEEK_CUR);
    (void)dup2(STDOUT_FILENO, out);
    for (off_t at = 0; at < len; at += got) {
        size_t most = (size_t)(len - at) < sizeof(text) ? (size_t)(len - at) : sizeof(text);
        if ((got = pread(terminal.memory, text, most, at)) <= 0)
            break;
        write_all(text, (size_t)got);
    }
}

/* ---- taking the terminal over ---- */

static const struct {
    short colour;
    attr_t with, without; /* colours */
} looks[TOP_STYLES] = {
    [TOP_PLAIN] = { -1, A_NORMAL, A_NORMAL },
    [TOP_DIM] = { -1, A_DIM, A_NORMAL },
    [TOP_BOLD] = { -1, A_BOLD, A_BOLD },
    [TOP_TITLE] = { -1, A_REVERSE, A_REVERSE },
    [TOP_SELECTED] = { -1, A_REVERSE, A_REVERSE },
    [TOP_ACCENT] = { COLOR_CYAN, A_NORMAL, A_NORMAL },
    [TOP_GOOD] = { COLOR_GREEN, A_NORMAL, A_NORMAL },
    [TOP_NOTICE] = { COLOR_YELLOW, A_NORMAL, A_BOLD },
    [TOP_BAD] = { COLOR_RED, A_BOLD, A_BOLD | A_UNDERLINE },
};
static attr_t attributes[TOP_STYLES];

/* See https://no-color.org: any value that is not empty. */
static bool may_have_colours(void)
{
    const char *no = getenv("NO_COLOR");
    return !(no && no[0]) && has_colors();
}

static void prepare_looks(void)
{
    bool colours = may_have_colours() && start_color() == OK && use_default_colors() == OK;
    for (int i = 0; i < TOP_STYLES; i++) {
        attributes[i] = colours ? looks[i].with : looks[i].without;
        if (colours && looks[i].colour >= 0 && init_pair((short)(i + 1), looks[i].colour, -1) == OK)
            attributes[i] |= (attr_t)COLOR_PAIR(i + 1);
    }
}

int top_terminal_open(void)
{
    if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &leave.modes) < 0)
        return -ENOTTY;
    int out = dup(STDOUT_FILENO);
    if (out < 0 || !(terminal.out = fdopen(out, "w"))) {
        int rc = -errno;
        os_file_close(out);
        return rc;
    }
    terminal.screen = newterm(NULL, terminal.out, stdin);
    if (!terminal.screen) {
        fclose(terminal.out);
        return -ENOENT;
    }
    terminal.open = true;
    terminal.memory = memfd_create("weir-top", MFD_CLOEXEC);
    if (!tigetstr("cup") || tigetstr("cup") == (char *)-1) {
        top_terminal_close();
        return -ENOENT;
    }
    /* newterm installed handlers. The caller blocks these signals, and their default action must
     * work when it unblocks them. */
    static const int own[] = { SIGINT, SIGTERM, SIGTSTP };
    struct sigaction usual = { .sa_handler = SIG_DFL };
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        (void)sigaction(own[i], &usual, NULL);
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    typeahead(-1);
    set_escdelay(ESCAPE_WAIT_MS);
    curs_set(0);
    prepare_looks();
    prepare_for_faults();
    return 0;
}

/* A terminal without an alternate screen keeps the picture. Its last line is cleared for the
 * shell. */
static void end_drawing(void)
{
    if (!tigetstr("rmcup")) {
        move(LINES - 1, 0);
        clrtoeol();
        refresh();
    }
    endwin();
}

void top_terminal_close(void)
{
    if (!terminal.open)
        return;
    end_drawing();
    leave.armed = false;
    delscreen(terminal.screen);
    fclose(terminal.out);
    os_file_close(terminal.memory);
    top_canvas_done(&terminal.shown);
    terminal.open = false;
}

void top_terminal_leave(void)
{
    end_drawing();
    leave.armed = false;
}

void top_terminal_return(void)
{
    leave.armed = true;
    reset_prog_mode();
    clearok(curscr, TRUE);
    draw_at_once();
}

bool top_terminal_unicode(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* ---- showing ---- */

void top_terminal_measure(unsigned *ret_rows, unsigned *ret_columns)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
        resizeterm(size.ws_row, size.ws_col);
    *ret_rows = (unsigned)LINES;
    *ret_columns = (unsigned)COLS;
    top_canvas_done(&terminal.shown);
    erase();
    clearok(stdscr, TRUE);
}

/* Draws the cells of one style from `column` on; returns the column after them. */
static unsigned show_run(const struct top_cell *cells, unsigned row, unsigned column,
                         unsigned columns)
{
    static wchar_t text[TOP_COLUMNS_MAX];
    unsigned begin = column, len = 0;
    for (; column < columns && cells[column].style == cells[begin].style; column++)
        if (cells[column].code != 0)
            text[len++] = (wchar_t)cells[column].code;
    attrset((int)attributes[cells[begin].style]);
    mvaddnwstr((int)row, (int)begin, text, (int)len);
    return column;
}

void top_terminal_show(const struct top_canvas *canvas)
{
    struct top_canvas *shown = &terminal.shown;
    if ((shown->rows != canvas->rows || shown->columns != canvas->columns) &&
        top_canvas_resize(shown, canvas->rows, canvas->columns) < 0)
        return;
    size_t bytes = canvas->columns * sizeof(*canvas->cells);
    for (unsigned row = 0; row < canvas->rows; row++) {
        const struct top_cell *cells = &canvas->cells[(size_t)row * canvas->columns];
        struct top_cell *old = &shown->cells[(size_t)row * canvas->columns];
        if (memcmp(cells, old, bytes) == 0)
            continue;
        memcpy(old, cells, bytes);
        for (unsigned column = 0; column < canvas->columns;)
            column = show_run(cells, row, column, canvas->columns);
    }
    move(LINES - 1, 0); /* a shell prints its message about a SIGSTOP here */
    draw_at_once();
}

/* ---- keys ---- */

unsigned top_terminal_key(void)
{
    static const struct {
        int ncurses;
        enum top_key key;
    } keys[] = {
        { KEY_UP, TOP_KEY_UP },         { KEY_DOWN, TOP_KEY_DOWN },
        { KEY_LEFT, TOP_KEY_LEFT },     { KEY_RIGHT, TOP_KEY_RIGHT },
        { KEY_PPAGE, TOP_KEY_PAGE_UP }, { KEY_NPAGE, TOP_KEY_PAGE_DOWN },
        { KEY_HOME, TOP_KEY_HOME },     { KEY_END, TOP_KEY_END },
        { KEY_BTAB, TOP_KEY_TAB_BACK },
    };
    int key = getch();
    if (key == ERR)
        return 0;
    if (key > 0 && key < 0x80)
        return (unsigned)key;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (keys[i].ncurses == key)
            return keys[i].key;
    return TOP_KEY_OTHER;
}
