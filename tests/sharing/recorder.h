/* SPDX-License-Identifier: MIT
 *
 * Records which thread reads and writes which cache line. weir's code is compiled with
 * -fsanitize=thread, so that each access to memory calls a function of the compiler's interface.
 * This recorder defines these functions in place of the sanitizer's library. It also stands in
 * front of the functions of libc that read, write, lock and allocate.
 *
 * Memory that only the kernel, libc or another library touches is not seen.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RECORDER_LINE = 64, RECORDER_THREADS_MAX = 32 };

enum recorder_kind {
    RECORDER_READ,
    RECORDER_WRITE,
    RECORDER_MODIFY, /* an atomic read-modify-write */
    RECORDER_LOCK,   /* a mutex or a semaphore */
    RECORDER_KINDS
};

/* What one thread did with one line. */
struct recorder_use {
    uintptr_t line;
    const void *by[RECORDER_KINDS];  /* the code of one access of each kind; NULL: there was none */
    unsigned offset[RECORDER_KINDS]; /* of that access in the line */
};

/* The calling thread is no serving thread, and is not recorded. */
void recorder_leave_out_this_thread(void);

/* Forgets the threads so far, which have ended. Later threads are numbered from 0. */
void recorder_forget_threads(void);

/* Begins and ends recording. No other thread does so. */
void recorder_begin(void);
void recorder_end(void);

/* How many threads there were, and how often each has received bytes, recorded or not. */
unsigned recorder_threads(void);
unsigned recorder_receives(unsigned thread);

/* After a recording: the lines of a thread, and its calls that allocate or free memory. */
const struct recorder_use *recorder_next(unsigned thread, const struct recorder_use *after);
unsigned recorder_allocations(unsigned thread);

/* What the thread did with this line; NULL: nothing. */
const struct recorder_use *recorder_find(unsigned thread, uintptr_t line);

/* A block of memory of malloc or mmap, which the recorder knows from its allocation on. */
struct recorder_block {
    uintptr_t at;
    size_t size;
    const void *by; /* the code that allocated it */
};

/* The block at an address; NULL: a variable of the program, or of a library. */
const struct recorder_block *recorder_block_at(uintptr_t address);

/* The first block of this size; NULL: there is none. */
const struct recorder_block *recorder_block_of(size_t size);

/* Prints the function, file and line of code. */
void recorder_print_code(const void *code);

/* The clocks of the program stand still, then move on by a second at a time, then run again. */
void recorder_stop_clock(void);
void recorder_add_second(void);
void recorder_start_clock(void);
